"""Whatever is sent to the back office, the answer explains itself and nothing is stored."""

from collections.abc import Callable

import httpx
import pytest

from tests.support.backoffice import BACKOFFICE, BOOKINGS, BUYER, PROJECTS, Desk, project_url, unit_url
from tests.support.client import Project, Unit
from tests.support.problems import invalid, problem
from tests.web.api.backoffice.conditions import Office

NOT_JSON = {
    "nothing but space": b" ",
    "cut off": b'{"until": "2030',
    "trailing text": b"{} {}",
    "a comment": b"{} // no",
    "duplicate keys": b'{"until": "2030-01-01T00:00:00Z", "until": "2030-01-01T00:00:00Z"}',
    "not a number": b'{"until": NaN}',
    "infinity": b'{"until": Infinity}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "not UTF-8": b'{"until": "\xff"}',
    "UTF-16": "{}".encode("utf-16"),
    "absurd nesting": b"[" * 100_000 + b"]" * 100_000,
    "an absurd number": b'{"until": ' + b"9" * 100_000 + b"}",
}
NO_OBJECT = (b"[]", b"null", b"1", b'"x"', b"true")

Path = Callable[[Unit, str], str]
# Where a body may be sent, and where one must be.
POSTS: dict[str, Path] = {
    "open": lambda unit, reference: f"{unit_url(unit)}/open",
    "extend": lambda unit, reference: f"{unit_url(unit)}/extend",
    "close-sale": lambda unit, reference: f"{unit_url(unit)}/close-sale",
    "extend a booking": lambda unit, reference: f"{BOOKINGS}/{reference}/extend",
    "reissue a link": lambda unit, reference: f"{BOOKINGS}/{reference}/reissue-link",
    "add a project": lambda unit, reference: PROJECTS,
}


@pytest.fixture
def reference(stored: Unit, office: Office) -> str:
    return office.held(stored).reference


@pytest.mark.parametrize("name", NOT_JSON)
@pytest.mark.parametrize("route", POSTS)
def test_what_is_not_json_is_malformed(
    desk: Desk, stored: Unit, reference: str, route: str, name: str
) -> None:
    before = desk.history(stored)
    headers = {"Content-Type": "application/json"}
    path = POSTS[route](stored, reference)
    problem(desk.http.post(path, content=NOT_JSON[name], headers=headers), 400)
    assert desk.history(stored) == before


@pytest.mark.parametrize("content", NO_OBJECT)
@pytest.mark.parametrize("route", POSTS)
def test_json_that_is_no_object_is_invalid(
    desk: Desk, stored: Unit, reference: str, route: str, content: bytes
) -> None:
    before = desk.history(stored)
    headers = {"Content-Type": "application/json"}
    invalid(desk.http.post(POSTS[route](stored, reference), content=content, headers=headers), "")
    assert desk.history(stored) == before


@pytest.mark.parametrize("content_type", ["text/plain", "application/json; charset=latin-1", "", None])
@pytest.mark.parametrize("route", POSTS)
def test_a_body_of_another_type_is_not_read(
    desk: Desk, stored: Unit, reference: str, route: str, content_type: str | None
) -> None:
    headers = {} if content_type is None else {"Content-Type": content_type}
    path = POSTS[route](stored, reference)
    problem(desk.http.post(path, content=b"{}", headers=headers), 415)


def test_a_post_that_needs_no_body_comes_without_body_and_type(desk: Desk, stored: Unit) -> None:
    request = desk.http.build_request("POST", f"{unit_url(stored)}/open")
    del request.headers["Content-Length"]
    assert desk.http.send(request).status_code == 200


def test_an_empty_body_may_have_a_type_and_a_length(desk: Desk, stored: Unit) -> None:
    headers = {"Content-Type": "application/json", "Content-Length": "0"}
    assert desk.http.post(f"{unit_url(stored)}/open", headers=headers).status_code == 200


def test_a_chunked_body_that_is_too_long_is_refused(desk: Desk, stored: Unit) -> None:
    chunks = iter([b"{", *[b" " * 65_536] * 16, b"}"])
    headers = {"Content-Type": "application/json"}
    problem(desk.http.post(f"{unit_url(stored)}/open", content=chunks, headers=headers), 413)
    assert stored.read()["status"] == "available"


@pytest.mark.parametrize(
    "action", ["sell", "Open", "OPEN", "open ", "", "%00", "%FF", "sign", "mark-refunded"]
)
def test_an_unknown_action_is_not_found(desk: Desk, stored: Unit, action: str) -> None:
    etag = stored.etag
    problem(desk.act(stored, action), 404)
    problem(desk.http.get(f"{unit_url(stored)}/{action}"), 404)
    assert stored.etag == etag


@pytest.mark.parametrize("action", ["open", "sell", "archive", "revoke-sale"])
def test_only_a_valid_key_learns_what_there_is(
    public: httpx.Client, payments: Desk, stored: Unit, action: str
) -> None:
    problem(public.post(f"{unit_url(stored)}/{action}"), 401)
    problem(payments.act(stored, action), 403)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/unknown", "/bookings/", "/bookings/x/y/z", "/projects/a/b/c/d/e", "/bookings/x/sell"],
)
def test_elsewhere_there_is_nothing(desk: Desk, path: str) -> None:
    problem(desk.http.get(BACKOFFICE + path), 404)


@pytest.mark.parametrize("slug", ["Not_A_Slug", "x", "%20", "a" * 101, "%FF"])
@pytest.mark.parametrize("rest", ["", "/layout", "/units/A-1/history"])
def test_a_slug_is_checked_on_every_path(desk: Desk, slug: str, rest: str) -> None:
    invalid(desk.http.get(f"{PROJECTS}/{slug}{rest}"), "/path/slug")


@pytest.mark.parametrize("code", ["%20A", "a" * 51, "%00", "%FF", "%0A", "A%CC%8A"])
def test_a_code_is_checked_on_every_path(desk: Desk, project: Project, code: str) -> None:
    units = f"{project_url(project)}/units/{code}"
    invalid(desk.http.get(f"{units}/history"), "/path/code")
    invalid(desk.http.post(f"{units}/open"), "/path/code")


def test_a_code_with_a_slash_is_one_part_of_the_path(
    desk: Desk, project: Project, new_unit: Callable[[str], Unit]
) -> None:
    unit = new_unit("A/101 ٪؟")
    assert desk.did(unit, "archive")["code"] == unit.code
    assert desk.history(unit)[0]["action"] == "archive"


@pytest.mark.parametrize(
    "body",
    [
        {**BUYER, "buyerName": "a\u0000b"},
        {**BUYER, "buyerName": "\ud800"},
        {**BUYER, "buyerName": "x" * 201},
        {**BUYER, "buyerName": 5},
        {**BUYER, "buyerName": ["x"]},
        {**BUYER, "buyerName": "two\nlines"},
    ],
)
def test_a_name_that_cannot_be_one_is_invalid(desk: Desk, stored: Unit, body: object) -> None:
    invalid(desk.act(stored, "close-sale", body), "/buyerName")
    assert stored.read()["status"] == "available"


def test_a_query_is_a_fault_where_none_is_taken(desk: Desk, stored: Unit, reference: str) -> None:
    paths = [make(stored, reference) for make in POSTS.values()]
    for path in paths[:-1]:
        response = desk.http.post(path, params={"dryRun": "true"})
        assert "/query/dryRun" in [error["pointer"] for error in problem(response, 422)["errors"]]
    gets = [f"{BOOKINGS}/{reference}", project_url(stored.project), f"{project_url(stored.project)}/layout"]
    for path in gets:
        invalid(desk.http.get(path, params={"x": "1"}), "/query/x")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_another_method_is_told_what_is_possible(
    desk: Desk, stored: Unit, reference: str, method: str
) -> None:
    expected = {
        f"{unit_url(stored)}/open": {"POST"},
        f"{unit_url(stored)}/archive": {"POST"},
        f"{unit_url(stored)}/history": {"GET", "HEAD"},
        f"{BOOKINGS}/{reference}": {"GET", "HEAD"},
        f"{BOOKINGS}/{reference}/cancel": {"POST"},
        BOOKINGS: {"GET", "HEAD"},
        PROJECTS: {"GET", "HEAD", "POST"},
    }
    for path, allowed in expected.items():
        response = desk.http.request(method, path)
        problem(response, 405)
        assert set(response.headers["allow"].split(", ")) == allowed


def test_a_reading_has_a_head(desk: Desk, stored: Unit, reference: str) -> None:
    for path in (f"{unit_url(stored)}/history", f"{BOOKINGS}/{reference}", BOOKINGS, PROJECTS):
        response = desk.http.head(path)
        assert (response.status_code, response.content) == (200, b"")


def test_a_revocation_needs_an_admin_before_anything_else(desk: Desk, unit: Unit) -> None:
    response = desk.act(unit, "revoke-sale", b"not json")
    problem(response, 403)
    assert 'scope="admin"' in response.headers["www-authenticate"]
    problem(desk.http.get(f"{unit_url(unit)}/revoke-sale"), 403)
