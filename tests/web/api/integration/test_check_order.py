"""A request that is wrong in two ways gets the answer of the check that comes first.

The order is 401, 403, 405/415/413, 400, 422, 404, 412, 409.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import httpx
import pytest

from tests.support import check_order
from tests.support.backoffice import Desk
from tests.support.bodies import full
from tests.support.check_order import Faults, refused_in_order
from tests.support.client import Project, Unit
from tests.support.keys import Keys


@dataclass(frozen=True, kw_only=True)
class Draft(check_order.Draft):
    """A request on a held unit, right in every way until faults are put into it."""

    slug: str
    code: str = "A-101"

    @property
    def url(self) -> str:
        return f"/v1/integration/projects/{self.slug}/units/{self.code}"


FAULTS: Faults = {
    **check_order.OF_ANY_REQUEST,
    "wrong method": (405, lambda draft: replace(draft, method="POST")),
    "invalid field": (422, lambda draft: replace(draft, body=draft.body | {"areaSqm": -1})),
    "invalid code": (422, lambda draft: replace(draft, code="x" * 51)),
    "invalid slug": (422, lambda draft: replace(draft, slug="Not_A_Slug")),
    "unknown project": (404, lambda draft: replace(draft, slug="no-such-tower")),
    "unknown unit": (404, lambda draft: replace(draft, method="PATCH", code="A-999")),
    "stale": (412, lambda draft: replace(draft, headers=draft.headers | {"If-Match": '"stale"'})),
    "locked status": (409, lambda draft: replace(draft, body=draft.body | {"status": "available"})),
    "locked terms": (409, lambda draft: replace(draft, body=draft.body | {"priceSar": 1})),
}
# These undo each other: both faults cannot stand in one request.
APART = [
    {"invalid code", "unknown unit"},
    {"invalid slug", "unknown project"},
    {"wrong method", "unknown unit"},
]


@pytest.fixture(scope="module")
def draft(module_unit: Unit, api_key: str, keys: Keys) -> Draft:
    return Draft(
        credentials=api_key,
        wrong_scope=keys.issue(scopes=["payments"]).text,
        method="PUT",
        body=full(),
        slug=module_unit.project.slug,
    )


@pytest.fixture(scope="module")
def module_unit(http: httpx.Client, new_project: Callable[[], Project], desk: Desk) -> Unit:
    unit = Unit(http, new_project(), "A-101")
    unit.create(full())
    desk.settle(unit.project, holdSeconds=3600)
    desk.held(unit)
    return unit


def test_the_draft_is_right(draft: Draft, public: httpx.Client) -> None:
    assert draft.send(public).status_code == 200


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_alone_has_its_answer_and_comes_before_those_that_are_checked_later(
    draft: Draft, public: httpx.Client, module_unit: Unit, name: str
) -> None:
    before = module_unit.etag
    refused_in_order(draft, public, FAULTS, APART, name)
    assert module_unit.etag == before
