"""A request that is wrong in two ways gets the answer of the check that comes first.

The order is 401, 403, 405/415/413, 400, 422, 404, 412, 409.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import httpx
import pytest

from tests.support import exact_json, states
from tests.support.bodies import full
from tests.support.client import Project, Unit, integration_client
from tests.support.keys import Keys
from tests.support.problems import problem
from tests.support.server import RunningServer
from tests.support.sql import Sql

TOO_LONG = 1024 * 1024 + 1


@dataclass(frozen=True)
class Draft:
    """A request on a held unit, right in every way until faults are put into it."""

    project: Project
    credentials: str
    wrong_scope: str
    method: str = "PUT"
    slug: str = ""
    code: str = "A-101"
    content_type: str = "application/json"
    body: dict[str, object] = field(default_factory=full)
    cut_off: bool = False
    padding: int = 0
    headers: dict[str, str] = field(default_factory=dict)

    def send(self, http: httpx.Client) -> httpx.Response:
        text = exact_json.write(self.body)
        content = (text[:-1] if self.cut_off else text).ljust(self.padding)
        headers = {"Content-Type": self.content_type, **self.headers}
        if self.credentials:
            headers["Authorization"] = f"Bearer {self.credentials}"
        url = f"/v1/integration/projects/{self.slug or self.project.slug}/units/{self.code}"
        return http.request(self.method, url, content=content, headers=headers)


Fault = Callable[[Draft], Draft]

FAULTS: dict[str, tuple[int, Fault]] = {
    "no key": (401, lambda draft: replace(draft, credentials="")),
    "unknown key": (401, lambda draft: replace(draft, credentials="nonsense")),
    "wrong scope": (403, lambda draft: replace(draft, credentials=draft.wrong_scope)),
    "wrong method": (405, lambda draft: replace(draft, method="POST")),
    "wrong content type": (415, lambda draft: replace(draft, content_type="text/plain")),
    "content encoding": (
        415,
        lambda draft: replace(draft, headers=draft.headers | {"Content-Encoding": "gzip"}),
    ),
    "too long": (413, lambda draft: replace(draft, padding=TOO_LONG)),
    "not json": (400, lambda draft: replace(draft, cut_off=True)),
    "invalid field": (422, lambda draft: replace(draft, body=draft.body | {"areaSqm": -1})),
    "invalid code": (422, lambda draft: replace(draft, code="x" * 51)),
    "invalid slug": (422, lambda draft: replace(draft, slug="Not_A_Slug")),
    "unknown project": (404, lambda draft: replace(draft, slug="no-such-tower")),
    "unknown unit": (404, lambda draft: replace(draft, method="PATCH", code="A-999")),
    "stale": (412, lambda draft: replace(draft, headers=draft.headers | {"If-Match": '"stale"'})),
    "locked status": (409, lambda draft: replace(draft, body=draft.body | {"status": "available"})),
    "locked terms": (409, lambda draft: replace(draft, body=draft.body | {"priceSar": 1})),
}
ORDER = [(401,), (403,), (405, 415, 413), (400,), (422,), (404,), (412,), (409,)]
# These undo each other: both faults cannot stand in one request.
APART = [
    {"invalid code", "unknown unit"},
    {"invalid slug", "unknown project"},
    {"wrong method", "unknown unit"},
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
def draft(module_unit: Unit, api_key: str, keys: Keys) -> Draft:
    return Draft(module_unit.project, api_key, keys.issue(scopes=["payments"]).text)


@pytest.fixture(scope="module")
def module_unit(http: httpx.Client, new_project: Callable[[], Project], sql: Sql) -> Unit:
    unit = Unit(http, new_project(), "A-101")
    unit.create(full())
    states.hold(sql, unit, expires_in=3600)
    return unit


@pytest.fixture(scope="module")
def bare(server: RunningServer) -> Iterator[httpx.Client]:
    with integration_client(server.address, None) as http:
        yield http


def test_the_draft_is_right(draft: Draft, bare: httpx.Client) -> None:
    assert draft.send(bare).status_code == 200


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_alone_has_its_answer(
    draft: Draft, bare: httpx.Client, module_unit: Unit, name: str
) -> None:
    status, fault = FAULTS[name]
    before = module_unit.etag
    problem(fault(draft).send(bare), status)
    assert module_unit.etag == before


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_faults_the_first_in_order_answers(
    draft: Draft, bare: httpx.Client, first: str, second: str
) -> None:
    (status, fault), (_, other) = FAULTS[first], FAULTS[second]
    problem(fault(other(draft)).send(bare), status)
