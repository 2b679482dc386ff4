"""A request of the back office that is wrong in two ways gets the answer of the check that comes first.

The order is 401, 403, 405/415/413, 400, 422, 404, 409.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import httpx
import pytest

from tests.api.backoffice.conditions import Office
from tests.support import exact_json
from tests.support.backoffice import BOOKINGS, BUYER, PROJECTS, Desk
from tests.support.bodies import full
from tests.support.client import Project, Unit
from tests.support.keys import Key
from tests.support.problems import problem

TOO_LONG = 1024 * 1024 + 1


@dataclass(frozen=True)
class Draft:
    """A request that would be refused with 409 alone, until faults are put into it."""

    path: str
    invalid_path: str
    unknown_path: str
    body: dict[str, object]
    credentials: str
    wrong_scope: str
    method: str = "POST"
    content_type: str = "application/json"
    cut_off: bool = False
    padding: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""

    def send(self, http: httpx.Client) -> httpx.Response:
        text = exact_json.write(self.body)
        content = (text[:-1] if self.cut_off else text).ljust(self.padding)
        headers = {"Content-Type": self.content_type, **self.headers}
        if self.credentials:
            headers["Authorization"] = f"Bearer {self.credentials}"
        return http.request(self.method, self.path + self.query, content=content, headers=headers)


Fault = Callable[[Draft], Draft]

FAULTS: dict[str, tuple[int, Fault]] = {
    "no key": (401, lambda draft: replace(draft, credentials="")),
    "unknown key": (401, lambda draft: replace(draft, credentials="nonsense")),
    "key in the query": (401, lambda draft: replace(draft, query="?access_token=x")),
    "wrong scope": (403, lambda draft: replace(draft, credentials=draft.wrong_scope)),
    "wrong method": (405, lambda draft: replace(draft, method="DELETE")),
    "wrong content type": (415, lambda draft: replace(draft, content_type="text/plain")),
    "content encoding": (415, lambda draft: replace(draft, headers={"Content-Encoding": "gzip"})),
    "too long": (413, lambda draft: replace(draft, padding=TOO_LONG)),
    "not json": (400, lambda draft: replace(draft, cut_off=True)),
    "unknown field": (422, lambda draft: replace(draft, body=draft.body | {"nonsense": 1})),
    "unknown parameter": (422, lambda draft: replace(draft, query="?nonsense=1")),
    "invalid path": (422, lambda draft: replace(draft, path=draft.invalid_path)),
    "unknown path": (404, lambda draft: replace(draft, path=draft.unknown_path)),
}
ORDER = [(401,), (403,), (405, 415, 413), (400,), (422,), (404,)]
# These undo each other: both faults cannot stand in one request.
APART = [
    {"invalid path", "unknown path"},
    {"key in the query", "unknown parameter"},
    {"key in the query", "no key"},
]


def rank(name: str) -> int:
    return next(place for place, statuses in enumerate(ORDER) if FAULTS[name][0] in statuses)


PAIRS = [
    (first, second)
    for first in FAULTS
    for second in FAULTS
    if rank(first) < rank(second) and {first, second} not in APART
]


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
    return Draft(path, path.replace(name, bad), path.replace(name, unknown), body, *keys)


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
    status, fault = FAULTS[name]
    etag = sold.etag
    response = fault(drafts[route]).send(public)
    problem(response, status)
    assert ("allow" in response.headers) is (status == 405)
    assert sold.etag == etag


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_faults_the_first_in_order_answers(
    drafts: dict[str, Draft], public: httpx.Client, route: str, first: str, second: str
) -> None:
    (status, fault), (_, other) = FAULTS[first], FAULTS[second]
    problem(fault(other(drafts[route])).send(public), status)
