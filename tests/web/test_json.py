"""JSON as strictly as we read it, in one piece and item by item, and as a body that must be there or may."""

import json
from collections.abc import AsyncIterator
from decimal import Decimal
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.errors import Fault, InvalidInput, raise_faults
from holdfast.web import json as bodies
from holdfast.web.api.parameters import read_query
from holdfast.web.errors import ItemTooLarge, MalformedBody
from holdfast.web.json import JsonResponse, array_items, line_items, parse_json
from holdfast.web.request import BODY_LIMIT, Request
from tests.support.in_process import app_with, at, client_of
from tests.support.problems import invalid, problem

REQUIRED, OPTIONAL = "/v1/required", "/v1/optional"
JSON = {"Content-Type": "application/json"}
JSON_TYPES = [
    "application/json", "Application/JSON", "application/json; charset=utf-8",
    "application/json;charset=UTF-8", 'application/json; charset="utf-8"',
]  # fmt: skip
OTHER_TYPES = [
    "", "json", "text/plain", "text/json", "application/jsonx", "application/merge-patch+json",
    "application/json; charset=latin-1", "application/json; charset=utf-16",
    "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
]  # fmt: skip

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


def items(text: str) -> list[Any]:
    return [parse_json(text[start:end]) for start, end, _ in array_items(text)]


@given(st.lists(values, max_size=5), st.integers(0, 5000))
def test_an_array_is_read_item_by_item_as_it_is_read_whole(array: list[Any], padding: int) -> None:
    text = json.dumps(["x" * padding, *array])
    assert items(text) == parse_json(text)


def test_an_item_is_whole_wherever_the_first_window_ends() -> None:
    for length in range(4070, 4110):
        unit = {"a": "x" * length, "b": [True, None, -12, "\u0041\n"]}
        assert items(json.dumps([unit, 7])) == [unit, 7]
    assert items(f"[{' ' * 10}{'1' * 900}, 2]") == [Decimal("1" * 900), 2]
    assert items(f"[{json.dumps('x' * 4080)}, 123456789]")[1] == 123456789


@pytest.mark.parametrize(
    "fault", ['{"a":x}', '{"a":1,}', "nul", '{"a" 1}', '{"a":1,"a":2}', "NaN", '{"a":"\\u12"}']
)
def test_a_fault_is_a_fault_however_much_follows_it(fault: str) -> None:
    with pytest.raises(MalformedBody):
        items(f"[{fault}, {'1, ' * 10_000}1]")


def test_an_item_larger_than_any_unit_may_be_is_refused() -> None:
    with pytest.raises(ItemTooLarge):
        items(json.dumps(["x" * 2 * 1024**2]))


def test_a_body_that_is_no_array_is_told_from_one_that_is_no_json() -> None:
    with pytest.raises(InvalidInput):
        items('{"a": 1}')
    with pytest.raises(MalformedBody):
        items('{"a": 1} x')


def test_lines_are_values_and_empty_ones_are_passed_over() -> None:
    text = '\n\r\n{"a":1}\n  \n {"a":2} \r\n3'
    found = [parse_json(text[start:end]) for start, end, _ in line_items(text)]
    assert found == [{"a": 1}, {"a": 2}, 3]


@pytest.mark.parametrize("text", ['{"a":1} {"a":2}', '{"a":\n1}', "[1]]"])
def test_a_line_that_is_not_one_value_is_refused(text: str) -> None:
    with pytest.raises(MalformedBody):
        list(line_items(text))


def test_an_exponent_beyond_all_measure_is_read_as_beyond_all_bounds() -> None:
    read = parse_json("[1e99999999999999999999, -1e99999999999999999999]")
    assert read == [Decimal("Infinity"), Decimal("-Infinity")]


async def echo(request: Request) -> JsonResponse:
    return JsonResponse(parse_json(await bodies.read_json_text(request)))


async def echo_what_there_is(request: Request) -> JsonResponse:
    body = await bodies.read_optional_json(request)
    faults: list[Fault] = []
    read_query(request, (), faults)
    raise_faults(faults)
    return JsonResponse(body)


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app_with(at(REQUIRED, echo), at(OPTIONAL, echo_what_there_is))) as client:
        yield client


async def in_chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


@pytest.mark.parametrize("path", [REQUIRED, OPTIONAL])
async def test_a_json_body_is_read_and_a_wrong_one_refused_required_or_not(
    http: httpx.AsyncClient, path: str
) -> None:
    for media_type in JSON_TYPES:
        response = await http.post(path, content=b'{"a": [1, null]}', headers={"Content-Type": media_type})
        assert response.json() == {"a": [1, None]}
    for wrong in (
        {},
        *({"Content-Type": other} for other in OTHER_TYPES),
        JSON | {"Content-Encoding": "gzip"},
    ):
        problem(await http.post(path, content=b"{}", headers=wrong), 415)
    for content in (b"{", b" ", b'{"a": 1, "a": 2}', b"\xff"):
        problem(await http.post(path, content=content, headers=JSON), 400)
    problem(await http.post(path, content=b" " * (BODY_LIMIT + 1), headers=JSON), 413)


async def test_a_required_body_cannot_be_left_out(http: httpx.AsyncClient) -> None:
    problem(await http.post(REQUIRED), 415)
    problem(await http.post(REQUIRED, headers=JSON), 400)


async def test_an_optional_body_may_be_left_out_or_empty(http: httpx.AsyncClient) -> None:
    for response in (
        await http.post(OPTIONAL),
        await http.post(OPTIONAL, headers=JSON),
        await http.post(OPTIONAL, content=b"{}", headers=JSON),
        await http.post(OPTIONAL, content=in_chunks()),
        await http.post(OPTIONAL, content=in_chunks(b"{", b"}"), headers=JSON),
    ):
        assert response.json() == {}
    problem(await http.post(OPTIONAL, content=in_chunks(b"{", b"}")), 415)


@pytest.mark.parametrize("headers", [{"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}])
async def test_a_body_that_is_announced_wrongly_is_refused_even_if_it_does_not_come(
    http: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    problem(await http.post(OPTIONAL, headers=headers), 415)


async def test_a_query_is_refused_where_none_is_taken(http: httpx.AsyncClient) -> None:
    invalid(await http.post(OPTIONAL, params={"limit": "1", "a": ""}), "/query/limit", "/query/a")
    for empty in ("?", "?&"):
        assert (await http.post(OPTIONAL + empty)).status_code == 200
