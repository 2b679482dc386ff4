"""A body that must be there, and one that may."""

from collections.abc import AsyncIterator

import httpx
import pytest

from holdfast.domain.errors import Fault, raise_faults
from holdfast.web.api.parameters import read_query
from holdfast.web.json import JsonResponse, parse_json, read_json_text, read_optional_json
from holdfast.web.request import BODY_LIMIT, Request
from tests.support.in_process import app_with, at, client_of
from tests.support.problems import invalid, problem

REQUIRED, OPTIONAL = "/v1/required", "/v1/optional"
JSON = {"Content-Type": "application/json"}


async def echo(request: Request) -> JsonResponse:
    return JsonResponse(parse_json(await read_json_text(request)))


async def echo_what_there_is(request: Request) -> JsonResponse:
    body = await read_optional_json(request)
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
async def test_a_json_body_is_read(http: httpx.AsyncClient, path: str) -> None:
    for headers in (JSON, {"Content-Type": "application/json; charset=utf-8"}):
        response = await http.post(path, content=b'{"a": [1, null]}', headers=headers)
        assert response.json() == {"a": [1, None]}


@pytest.mark.parametrize("path", [REQUIRED, OPTIONAL])
@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"{}", {}, 415),
        (b"{}", {"Content-Type": "text/plain"}, 415),
        (b"{}", {"Content-Type": "application/json; charset=latin-1"}, 415),
        (b"{}", JSON | {"Content-Encoding": "gzip"}, 415),
        (b"a=b", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (b"{", JSON, 400),
        (b" ", JSON, 400),
        (b'{"a": 1, "a": 2}', JSON, 400),
        (b"\xff", JSON, 400),
        (b" " * (BODY_LIMIT + 1), JSON, 413),
    ],
)
async def test_a_wrong_body_is_refused_required_or_not(
    http: httpx.AsyncClient, path: str, content: bytes, headers: dict[str, str], status: int
) -> None:
    problem(await http.post(path, content=content, headers=headers), status)


async def test_a_required_body_cannot_be_left_out(http: httpx.AsyncClient) -> None:
    problem(await http.post(REQUIRED), 415)
    problem(await http.post(REQUIRED, headers=JSON), 400)


@pytest.mark.parametrize("headers", [{}, JSON])
async def test_an_optional_body_may_be_left_out(http: httpx.AsyncClient, headers: dict[str, str]) -> None:
    assert (await http.post(OPTIONAL, headers=headers)).json() == {}


async def test_an_optional_body_may_be_an_empty_object(http: httpx.AsyncClient) -> None:
    assert (await http.post(OPTIONAL, content=b"{}", headers=JSON)).json() == {}


async def test_chunks_without_content_are_no_body(http: httpx.AsyncClient) -> None:
    assert (await http.post(OPTIONAL, content=in_chunks())).json() == {}


async def test_a_body_in_chunks_needs_its_type(http: httpx.AsyncClient) -> None:
    problem(await http.post(OPTIONAL, content=in_chunks(b"{", b"}")), 415)
    assert (await http.post(OPTIONAL, content=in_chunks(b"{", b"}"), headers=JSON)).json() == {}


@pytest.mark.parametrize("headers", [{"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}])
async def test_a_body_that_is_announced_wrongly_is_refused_even_if_it_does_not_come(
    http: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    problem(await http.post(OPTIONAL, headers=headers), 415)


async def test_a_query_is_refused_where_none_is_taken(http: httpx.AsyncClient) -> None:
    invalid(await http.post(OPTIONAL, params={"limit": "1", "a": ""}), "/query/limit", "/query/a")


@pytest.mark.parametrize("query", ["", "&"])
async def test_a_query_without_parameters_is_none(http: httpx.AsyncClient, query: str) -> None:
    assert (await http.post(f"{OPTIONAL}?{query}")).status_code == 200
