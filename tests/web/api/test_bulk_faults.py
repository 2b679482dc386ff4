"""A bulk call that is wrong as a whole stores nothing."""

from collections.abc import Iterator

import httpx
import pytest

from tests.support import exact_json
from tests.support.bodies import minimal
from tests.support.client import JSON, NDJSON, Project, put_array, put_bulk
from tests.support.problems import invalid, problem

GOOD = exact_json.write(minimal(code="A-1"))
LIMIT = 32 * 1024 * 1024


@pytest.fixture
def untouched(http: httpx.Client, project: Project) -> Iterator[Project]:
    """A project in which nothing may have been stored by the end of the test."""
    yield project
    assert http.get(project.units_url).json()["units"] == []


FAULTS = {
    "not json": "nonsense",
    "cut off": GOOD[:-5],
    "duplicate key": '{"code": "A-2", "code": "A-3"}',
    "nan": '{"code": "A-2", "priceSar": NaN}',
    "long number": '{"code": "A-2", "priceSar": ' + "9" * 5000 + "}",
    "deep": '{"code": "A-2", "images": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "raw nul": '{"code": "A\x00"}',
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_syntax_fault_in_a_line_stores_nothing(http: httpx.Client, untouched: Project, fault: str) -> None:
    for lines in ([fault, GOOD], [GOOD, fault, GOOD], [GOOD] * 3 + [fault]):
        problem(put_bulk(http, untouched, "\n".join(lines) + "\n", NDJSON), 400)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_a_syntax_fault_in_the_array_stores_nothing(
    http: httpx.Client, untouched: Project, fault: str
) -> None:
    for items in ([fault, GOOD], [GOOD, fault, GOOD], [GOOD] * 3 + [fault]):
        problem(put_bulk(http, untouched, "[" + ",".join(items) + "]", JSON), 400)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        f"[{GOOD}".encode(),
        f"[{GOOD},]".encode(),
        f"[{GOOD}] x".encode(),
        f"[{GOOD}][]".encode(),
        b"\xef\xbb\xbf[" + GOOD.encode() + b"]",
        f"[{GOOD}]".encode("utf-16"),
        f"[{GOOD}".encode() + b',"\xff"]',
    ],
)
def test_a_body_that_is_not_json_stores_nothing(
    http: httpx.Client, untouched: Project, content: bytes
) -> None:
    problem(put_bulk(http, untouched, content, JSON), 400)


@pytest.mark.parametrize(
    "content",
    [b"\xef\xbb\xbf" + GOOD.encode(), GOOD.encode() + b'\n{"type": "\xff"}\n', f"{GOOD} {GOOD}\n".encode()],
)
def test_lines_that_are_not_json_store_nothing(
    http: httpx.Client, untouched: Project, content: bytes
) -> None:
    problem(put_bulk(http, untouched, content, NDJSON), 400)


@pytest.mark.parametrize("content", ["{}", "null", "5", '"text"', GOOD])
def test_a_body_that_is_no_array_is_refused(http: httpx.Client, untouched: Project, content: str) -> None:
    invalid(put_bulk(http, untouched, content, JSON), "")


@pytest.mark.parametrize(
    "content_type",
    [
        "text/plain",
        "application/ndjson",
        "application/json; charset=latin-1",
        "application/x-ndjson; charset=utf-16",
    ],
)
def test_another_content_type_is_refused(http: httpx.Client, untouched: Project, content_type: str) -> None:
    problem(put_bulk(http, untouched, f"[{GOOD}]", content_type), 415)


def test_a_single_unit_cannot_be_sent_as_lines(http: httpx.Client, untouched: Project) -> None:
    headers = {"Content-Type": NDJSON}
    problem(http.put(f"{untouched.units_url}/A-1", content=GOOD, headers=headers), 415)


@pytest.mark.parametrize("name", ["dryRun", "reconcile"])
@pytest.mark.parametrize("value", ["yes", "1", "", "TRUE "])
def test_a_flag_is_true_or_false(http: httpx.Client, untouched: Project, name: str, value: str) -> None:
    invalid(put_array(http, untouched, [minimal(code="A-1")], **{name: value}), f"/query/{name}")


def test_every_fault_of_the_query_is_reported_at_once(http: httpx.Client, untouched: Project) -> None:
    response = put_array(http, untouched, [], dryRun="perhaps", reconcile="perhaps")
    invalid(response, "/query/dryRun", "/query/reconcile")


def test_an_unknown_project_takes_no_units(http: httpx.Client) -> None:
    problem(put_array(http, Project("", "no-such-tower", ""), [minimal(code="A-1")]), 404)


def test_a_bad_slug_takes_no_units(http: httpx.Client) -> None:
    invalid(put_array(http, Project("", "No_Such", ""), [minimal(code="A-1")]), "/path/slug")


def test_32_mib_are_accepted(http: httpx.Client, project: Project) -> None:
    content = f"[{GOOD}]".encode().ljust(LIMIT)
    assert put_bulk(http, project, content, JSON).json()["counts"]["created"] == 1


def test_one_byte_more_is_too_much(http: httpx.Client, untouched: Project) -> None:
    problem(put_bulk(http, untouched, f"[{GOOD}]".encode().ljust(LIMIT + 1), JSON), 413)


def test_one_byte_more_is_too_much_without_a_length(http: httpx.Client, untouched: Project) -> None:
    content = f"[{GOOD}]".encode().ljust(LIMIT + 1)
    chunks = (content[start : start + 65_536] for start in range(0, len(content), 65_536))
    problem(http.put(untouched.units_url, content=chunks, headers={"Content-Type": JSON}), 413)


def test_more_than_1_mib_is_fine_in_bulk(http: httpx.Client, project: Project) -> None:
    items = [minimal(code=f"U-{number}", description="x" * 10_000) for number in range(150)]
    assert put_array(http, project, items).json()["counts"]["created"] == 150


@pytest.mark.parametrize("gap", ["\n", " ", "\r\n", " \n"])
def test_a_long_run_of_white_space_is_read_in_good_time(
    http: httpx.Client, project: Project, gap: str
) -> None:
    """A reader that goes over the rest again for each empty line would not come to an end."""
    lines = f"{GOOD}\n" + gap * 50_000 + "\n" + exact_json.write(minimal(code="A-2"))
    assert put_bulk(http, project, lines, NDJSON).json()["counts"]["created"] == 2
