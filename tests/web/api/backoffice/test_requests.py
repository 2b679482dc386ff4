"""Whatever is sent to the back office, the answer explains itself and nothing is stored.

Of two faults the first in this order answers: 401, 403, 405/415/413, 400, 422, 404, 409.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx
import pytest

from tests.support import check_order
from tests.support.backoffice import BACKOFFICE, BOOKINGS, PROJECTS, Desk, project_url, unit_url
from tests.support.bodies import full
from tests.support.buying import BUYER
from tests.support.check_order import Faults, refused_in_order
from tests.support.client import JSON, Project, Unit
from tests.support.keys import Key
from tests.support.problems import invalid, problem

# The order of checks


@dataclass(frozen=True, kw_only=True)
class Draft(check_order.Draft):
    """A request that would be refused with 409 alone, until faults are put into it."""

    path: str
    invalid_path: str
    unknown_path: str
    query: str = ""

    @property
    def url(self) -> str:
        return self.path + self.query


FAULTS: Faults = {
    **check_order.OF_ANY_REQUEST,
    "key in the query": (401, lambda draft: replace(draft, query="?access_token=x")),
    "wrong method": (405, lambda draft: replace(draft, method="DELETE")),
    "unknown field": (422, lambda draft: replace(draft, body=draft.body | {"nonsense": 1})),
    "unknown parameter": (422, lambda draft: replace(draft, query="?nonsense=1")),
    "invalid path": (422, lambda draft: replace(draft, path=draft.invalid_path)),
    "unknown path": (404, lambda draft: replace(draft, path=draft.unknown_path)),
}
# These undo each other: both faults cannot stand in one request.
APART = [
    {"invalid path", "unknown path"},
    {"key in the query", "unknown parameter"},
    {"key in the query", "no key"},
]


@pytest.fixture(scope="module")
def sold(http: httpx.Client, new_project: Callable[[], Project], desk: Desk) -> Unit:
    unit = Unit(http, new_project(), "A-101")
    unit.create(full())
    desk.sold(unit)
    return unit


@pytest.fixture(scope="module", params=["close-sale of a unit", "extend a booking"])
def draft(request: pytest.FixtureRequest, sold: Unit, desk: Desk, backoffice_key: Key, api_key: str) -> Draft:
    body: dict[str, object] = {}
    if request.param == "extend a booking":
        (booking,) = desk.bookings(project=sold.project.slug)["bookings"]
        template, name, unknown = f"{BOOKINGS}/%s/extend", booking["reference"], "AAA-AAA-AAA"
    else:
        template, name, unknown = f"{project_url(sold.project)}/units/%s/close-sale", sold.code, "A-999"
        body |= BUYER
    return Draft(
        credentials=backoffice_key.text,
        wrong_scope=api_key,
        method="POST",
        body=body,
        path=template % name,
        invalid_path=template % "%FF",
        unknown_path=template % unknown,
    )


def test_a_request_without_fault_is_refused_for_the_status_alone(draft: Draft, public: httpx.Client) -> None:
    assert problem(draft.send(public), 409)["currentStatus"] == "sold"


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_alone_has_its_answer_and_comes_before_those_that_are_checked_later(
    draft: Draft, public: httpx.Client, sold: Unit, name: str
) -> None:
    etag = sold.etag
    response = refused_in_order(draft, public, FAULTS, APART, name)
    assert ("allow" in response.headers) is (response.status_code == 405)
    assert sold.etag == etag


# Bodies


@pytest.fixture
def reference(stored: Unit, desk: Desk) -> str:
    return desk.held(stored).reference


@pytest.fixture
def posts(stored: Unit, reference: str) -> list[str]:
    """Where a body may be sent, and where one must be."""
    on_unit = [f"{unit_url(stored)}/{action}" for action in ("open", "extend", "close-sale")]
    return [*on_unit, f"{BOOKINGS}/{reference}/extend", f"{BOOKINGS}/{reference}/reissue-link", PROJECTS]


@pytest.mark.parametrize(
    ("status", "content", "content_type"),
    [(400, b'{"until": "2030', JSON), (422, b"[]", JSON), (422, b"null", JSON), (415, b"{}", "text/plain")],
)
def test_a_body_that_cannot_be_read_is_refused(
    desk: Desk, stored: Unit, posts: list[str], status: int, content: bytes, content_type: str
) -> None:
    """All that cannot be read is in tests/web/test_json.py."""
    before, headers = desk.history(stored), {"Content-Type": content_type}
    for path in posts:
        refusal = problem(desk.http.post(path, content=content, headers=headers), status)
        assert status != 422 or [error["pointer"] for error in refusal["errors"]] == [""]
    assert desk.history(stored) == before


# Paths, queries and methods


@pytest.mark.parametrize(
    "action", ["sell", "Open", "OPEN", "open ", "", "%00", "%FF", "sign", "mark-refunded"]
)
def test_an_unknown_action_is_not_found(desk: Desk, stored: Unit, action: str) -> None:
    etag = stored.etag
    problem(desk.act(stored, action), 404)
    problem(desk.http.get(f"{unit_url(stored)}/{action}"), 404)
    assert stored.etag == etag


@pytest.mark.parametrize(
    "path",
    ["", "/", "/unknown", "/bookings/", "/bookings/x/y/z", "/projects/a/b/c/d/e", "/bookings/x/sell"],
)
def test_elsewhere_there_is_nothing(desk: Desk, path: str) -> None:
    problem(desk.http.get(BACKOFFICE + path), 404)


def test_slugs_and_codes_are_checked_on_every_path(desk: Desk, project: Project) -> None:
    for slug in ("Not_A_Slug", "x", "%20", "a" * 101, "%FF"):
        for rest in ("", "/layout", "/units/A-1/history"):
            invalid(desk.http.get(f"{PROJECTS}/{slug}{rest}"), "/path/slug")
    for code in ("%20A", "a" * 51, "%00", "%FF", "%0A", "A%CC%8A"):
        units = f"{project_url(project)}/units/{code}"
        invalid(desk.http.get(f"{units}/history"), "/path/code")
        invalid(desk.http.post(f"{units}/open"), "/path/code")


def test_a_code_with_a_slash_is_one_part_of_the_path(desk: Desk, new_unit: Callable[[str], Unit]) -> None:
    unit = new_unit("A/101 ٪؟")
    assert desk.did(unit, "archive")["code"] == unit.code
    assert desk.history(unit)[0]["action"] == "archive"


def test_a_query_is_a_fault_where_none_is_taken(
    desk: Desk, stored: Unit, posts: list[str], reference: str
) -> None:
    for path in posts[:-1]:
        response = desk.http.post(path, params={"dryRun": "true"})
        assert "/query/dryRun" in [error["pointer"] for error in problem(response, 422)["errors"]]
    gets = [f"{BOOKINGS}/{reference}", project_url(stored.project), f"{project_url(stored.project)}/layout"]
    for path in gets:
        invalid(desk.http.get(path, params={"x": "1"}), "/query/x")


def test_another_method_is_told_what_is_possible_and_a_reading_has_a_head(
    desk: Desk, stored: Unit, reference: str
) -> None:
    for path, allowed in {
        f"{unit_url(stored)}/open": "POST",
        f"{unit_url(stored)}/history": "GET, HEAD",
        f"{BOOKINGS}/{reference}": "GET, HEAD",
        f"{BOOKINGS}/{reference}/cancel": "POST",
        BOOKINGS: "GET, HEAD",
        PROJECTS: "GET, HEAD, POST",
    }.items():
        for method in ("PUT", "PATCH", "DELETE"):
            response = desk.http.request(method, path)
            problem(response, 405)
            assert sorted(response.headers["allow"].split(", ")) == allowed.split(", ")
        if "HEAD" in allowed:
            response = desk.http.head(path)
            assert (response.status_code, response.content) == (200, b"")
