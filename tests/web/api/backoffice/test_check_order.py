"""A request of the back office that is wrong in two ways gets the answer of the check that comes first.

The order is 401, 403, 405/415/413, 400, 422, 404, 409.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx
import pytest

from tests.support import check_order
from tests.support.backoffice import BOOKINGS, BUYER, PROJECTS, Desk
from tests.support.bodies import full
from tests.support.check_order import Faults, refused_for_one, refused_for_the_first
from tests.support.client import Project, Unit
from tests.support.keys import Key
from tests.support.problems import problem
from tests.web.api.backoffice.conditions import Office


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
PAIRS = check_order.pairs(FAULTS, APART)


@pytest.fixture(scope="module")
def sold(http: httpx.Client, new_project: Callable[[], Project], office: Office) -> Unit:
    unit = Unit(http, new_project(), "A-101")
    unit.create(full())
    office.sold(unit)
    return unit


@pytest.fixture(scope="module")
def drafts(sold: Unit, desk: Desk, backoffice_key: Key, api_key: str) -> dict[str, Draft]:
    unit = f"{PROJECTS}/{sold.project.slug}/units/A-101"
    (booking,) = desk.bookings(project=sold.project.slug)["bookings"]
    reference = f"{BOOKINGS}/{booking['reference']}"
    keys = (backoffice_key.text, api_key)
    return {
        "walk-in sale": _draft(f"{unit}/close-sale", "/A-101/", "/A-999/", dict(BUYER), keys),
        "extend a unit": _draft(f"{unit}/extend", "/A-101/", "/A-999/", {}, keys),
        "archive": _draft(f"{unit}/archive", "/A-101/", "/A-999/", {}, keys),
        "extend a booking": _draft(f"{reference}/extend", booking["reference"], "AAA-AAA-AAA", {}, keys),
        "cancel": _draft(f"{reference}/cancel", booking["reference"], "AAA-AAA-AAA", {}, keys),
    }


def _draft(path: str, name: str, unknown: str, body: dict[str, object], keys: tuple[str, str]) -> Draft:
    bad = "/%FF/" if name.startswith("/") else "%FF"
    return Draft(
        credentials=keys[0],
        wrong_scope=keys[1],
        method="POST",
        body=body,
        path=path,
        invalid_path=path.replace(name, bad),
        unknown_path=path.replace(name, unknown),
    )


ROUTES = ("walk-in sale", "extend a unit", "archive", "extend a booking", "cancel")


@pytest.mark.parametrize("route", ROUTES)
def test_the_draft_is_refused_for_the_status_alone(
    drafts: dict[str, Draft], public: httpx.Client, route: str
) -> None:
    assert problem(drafts[route].send(public), 409)["currentStatus"] == "sold"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_alone_has_its_answer(
    drafts: dict[str, Draft], public: httpx.Client, sold: Unit, route: str, name: str
) -> None:
    etag = sold.etag
    response = refused_for_one(drafts[route], public, FAULTS, name)
    assert ("allow" in response.headers) is (response.status_code == 405)
    assert sold.etag == etag


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_faults_the_first_in_order_answers(
    drafts: dict[str, Draft], public: httpx.Client, route: str, first: str, second: str
) -> None:
    refused_for_the_first(drafts[route], public, FAULTS, first, second)
