"""Bodies that are not JSON, or more than JSON, or too much of it."""

import gzip
import json
from collections.abc import Iterator

import httpx
import pytest

from tests.support import raw_http
from tests.support.client import JSON, Unit
from tests.support.problems import problem
from tests.support.server import RunningServer

GOOD = '{"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}'
MEBIBYTE = 1024 * 1024


def with_part(part: str) -> bytes:
    return (GOOD[:-1] + ", " + part + "}").encode()


NOT_JSON = {
    "empty": b"",
    "blank": b"  \n",
    "cut off": GOOD[:-1].encode(),
    "trailing text": GOOD.encode() + b" x",
    "trailing object": GOOD.encode() + b"{}",
    "trailing comma": (GOOD[:-1] + ",}").encode(),
    "trailing nul": GOOD.encode() + b"\x00",
    "single quotes": b"{'type': 'x'}",
    "comment": b"/* hello */" + GOOD.encode(),
    "duplicate key": with_part('"type": "villa"'),
    "duplicate key, same value": with_part('"type": "apartment"'),
    "duplicate key, escaped": with_part(r'"\u0074ype": "villa"'),
    "duplicate key, nested": with_part(
        '"images": [{"url": "https://a.example", "url": "https://b.example"}]'
    ),
    "duplicate unknown key": with_part('"colour": 1, "colour": 2'),
    "NaN": with_part('"vatRate": NaN'),
    "Infinity": with_part('"vatRate": Infinity'),
    "-Infinity": with_part('"vatRate": -Infinity'),
    "5000 digits": with_part('"vatRate": ' + "9" * 5000),
    "5000 decimals": with_part('"vatRate": 0.' + "1" * 5000),
    "5000 digits of exponent": with_part('"vatRate": 1e' + "9" * 5000),
    "leading zero": with_part('"vatRate": 015'),
    "hexadecimal": with_part('"vatRate": 0x10'),
    "plus sign": with_part('"vatRate": +1'),
    "bare point": with_part('"vatRate": 1.'),
    "nested arrays": with_part('"images": ' + "[" * 100_000 + "]" * 100_000),
    "nested arrays, open": with_part('"images": ' + "[" * 100_000),
    "nested objects": with_part('"images": ' + '{"a":' * 100_000 + "1" + "}" * 100_000),
    "nested arrays alone": b"[" * 100_000 + b"]" * 100_000,
    "invalid utf-8": with_part('"description": "@"').replace(b"@", b"\xff"),
    "overlong utf-8": with_part('"description": "@"').replace(b"@", b"\xc0\xaf"),
    "surrogate in utf-8": with_part('"description": "@"').replace(b"@", b"\xed\xa0\x80"),
    "cut off utf-8": with_part('"description": "@"').replace(b"@", b"\xe2\x82"),
    "bom": b"\xef\xbb\xbf" + GOOD.encode(),
    "utf-16": GOOD.encode("utf-16"),
    "utf-16 without bom": GOOD.encode("utf-16-le"),
    "utf-32": GOOD.encode("utf-32"),
    "raw control character": with_part('"description": "a\x01b"'),
    "raw nul": with_part('"description": "a\x00b"'),
    "raw line break": with_part('"description": "a\nb"'),
    "bad escape": with_part(r'"description": "\x41"'),
    "form": b"type=apartment&areaSqm=120.5",
}


@pytest.mark.parametrize("content", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_a_put_that_is_not_json_stores_nothing(unit: Unit, content: bytes) -> None:
    problem(unit.put(content), 400)
    assert not unit.exists


@pytest.mark.parametrize("content", NOT_JSON.values(), ids=NOT_JSON.keys())
def test_a_patch_that_is_not_json_changes_nothing(stored: Unit, content: bytes) -> None:
    etag = stored.etag
    problem(stored.patch(content), 400)
    assert stored.etag == etag


@pytest.mark.parametrize(
    "content", [f" \r\n\t{GOOD}\n ".encode(), GOOD.encode(), GOOD.replace(" ", "").encode()]
)
def test_white_space_around_is_json(unit: Unit, content: bytes) -> None:
    assert unit.put(content).status_code == 201


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=UTF-8",
        'application/json; charset="utf-8"',
    ],
)
def test_json_may_be_announced_in_these_ways(unit: Unit, content_type: str) -> None:
    assert unit.put(GOOD, Content_Type=content_type).status_code == 201


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/plain",
        "text/json",
        "application/json; charset=latin-1",
        "application/json; charset=utf-16",
        "application/jsonx",
        "application/merge-patch+json",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "json",
    ],
)
def test_any_other_announcement_is_refused(stored: Unit, content_type: str) -> None:
    etag = stored.etag
    problem(stored.put(GOOD, Content_Type=content_type), 415)
    problem(stored.patch("{}", Content_Type=content_type), 415)
    assert stored.etag == etag


def test_a_body_that_is_not_announced_is_refused(unit: Unit) -> None:
    problem(unit.http.put(unit.url, content=GOOD), 415)
    assert not unit.exists


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate"])
def test_an_encoded_body_is_refused(unit: Unit, encoding: str) -> None:
    problem(unit.put(gzip.compress(GOOD.encode()), Content_Encoding=encoding), 415)
    assert not unit.exists


def test_1_mib_is_accepted(unit: Unit) -> None:
    assert unit.put(GOOD.ljust(MEBIBYTE)).status_code == 201


def test_one_byte_more_is_too_much(stored: Unit) -> None:
    etag = stored.etag
    problem(stored.put(GOOD.ljust(MEBIBYTE + 1)), 413)
    problem(stored.patch("{}".ljust(MEBIBYTE + 1)), 413)
    assert stored.etag == etag


def chunks(length: int) -> Iterator[bytes]:
    yield from (GOOD.ljust(length)[start : start + 65_536].encode() for start in range(0, length, 65_536))


def test_1_mib_without_a_length_is_accepted(unit: Unit) -> None:
    headers = {"Content-Type": JSON}
    assert unit.http.put(unit.url, content=chunks(MEBIBYTE), headers=headers).status_code == 201


def test_one_byte_more_without_a_length_is_too_much(unit: Unit) -> None:
    headers = {"Content-Type": JSON}
    problem(unit.http.put(unit.url, content=chunks(MEBIBYTE + 1), headers=headers), 413)
    assert not unit.exists


def test_a_claim_of_more_than_is_allowed_is_refused_before_it_is_sent(
    real_server: RunningServer, api_key: str, unit: Unit
) -> None:
    headers = [
        ("Authorization", f"Bearer {api_key}"),
        ("Content-Type", JSON),
        ("Content-Length", str(10**15)),
    ]
    head = raw_http.request_head("PUT", unit.url, headers)
    assert raw_http.exchange(real_server.address, head).status == 413


def test_a_body_that_never_ends_is_cut_off(real_server: RunningServer, api_key: str, unit: Unit) -> None:
    headers = [
        ("Authorization", f"Bearer {api_key}"),
        ("Content-Type", JSON),
        ("Transfer-Encoding", "chunked"),
    ]
    endless = raw_http.chunked(b" " * (2 * MEBIBYTE)).removesuffix(b"0\r\n\r\n")
    head = raw_http.request_head("PUT", unit.url, headers)
    assert raw_http.exchange(real_server.address, head + endless).status == 413
    assert not unit.exists


def test_the_answer_to_a_lone_surrogate_is_valid_json(unit: Unit) -> None:
    response: httpx.Response = unit.put(with_part(r'"\ud800\u0000": "\udfff"'))
    problem(response, 422)
    json.loads(response.content.decode("utf-8", errors="strict"))


def test_a_name_twice_among_very_many_is_found_in_good_time(unit: Unit) -> None:
    """A reader that counts each name anew would not come to an end."""
    names = [f"n{number}" for number in range(60_000)]
    content = "{" + ",".join(f'"{name}":0' for name in [*names, names[-1]]) + "}"
    problem(unit.put(content), 400)


def test_very_many_unknown_names_are_refused(unit: Unit) -> None:
    content = "{" + ",".join(f'"n{number}":0' for number in range(60_000)) + "}"
    errors = problem(unit.put(content), 422)["errors"]
    assert len(errors) == 101
    assert errors[-1]["message"] == "And 59903 more."
