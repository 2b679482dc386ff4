"""Who may do what, at every place of the application: each role with a session, each scope with a key.

The places are those of the application itself, so none can be forgotten.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import pytest
from starlette.routing import BaseRoute, Mount, Route, Router

from holdfast.domain.api_key import Scope
from holdfast.domain.permissions import ROLE_PERMISSIONS, SCOPE_PERMISSIONS, Permission, Role
from holdfast.settings import Settings
from holdfast.web.api.routes import ApiPath, Unknown
from holdfast.web.app import create_app
from holdfast.web.pages.backoffice.base import StaffRequest
from holdfast.web.pages.base import PublicPage
from holdfast.web.pages.forms import csrf_token
from holdfast.web.pages.routes import PagePath, UnknownPage
from holdfast.web.pages.service import PageFiles
from holdfast.web.pages.storefront.base import BuyerRequest
from tests.support.app import InProcessApp
from tests.support.client import integration_client
from tests.support.keys import Keys
from tests.support.server import WEBHOOKS
from tests.support.staff_client import People, Person

SESSION = "__Host-holdfast_session"
SIGN_IN = "/backoffice/sign-in"
WAYS_OUT = ("/backoffice/sign-out", "/backoffice/account/sign-out-everywhere")
NOT_YOURS = "Your role does not include this."
NAMES = {
    "slug": "no-such-project", "code": "A-1", "reference": "Q39-4F6-4K6", "id": str(UUID(int=1)),
    "token": "x", "name": "invalid-key",
}  # fmt: skip
# What asks for no permission stands here by name, so that nothing is opened by an oversight.
OF_ANYBODY = (
    "/v1/storefront/", "/v1/payments/callback", "/healthz", "/readyz", "/metrics", "/docs", "/openapi.json",
    "/problems",
)  # fmt: skip
OF_STRANGERS = {SIGN_IN, f"{SIGN_IN}/code", f"{SIGN_IN}/language", "/backoffice/set-up/{token}"}
OF_WHOEVER_IS_SIGNED_IN = ("/backoffice/account", *WAYS_OUT)
ALSO_OF_WHOEVER_IS_SIGNED_IN = {"/backoffice", "/backoffice/settings"}
BELOW = {"/v1/integration": Permission.INTEGRATE, "/v1/backoffice": Permission.SEE_UNITS}
ADMINS_ONLY = ("/keys", "/staff", "/revoke-sale")
SETTINGS = Settings.from_environment({**WEBHOOKS, "HOLDFAST_DATABASE_URL": "postgresql://nowhere/nothing"})


class Way(NamedTuple):
    """One method at one path."""

    method: str
    path: str
    permission: Permission | None

    @property
    def address(self) -> str:
        return self.path.format(**NAMES)


def name_of(way: Way) -> str:
    return f"{way.method} {way.path}"


def places(routes: Sequence[BaseRoute]) -> Iterator[object]:
    """The application behind each route, and behind whatever else is asked for below a mount."""
    for route in routes:
        if isinstance(route, Mount):
            yield from places(route.routes)
            yield route.app.default if isinstance(route.app, Router) else route.app
        else:
            assert isinstance(route, Route)
            yield route.endpoint


PLACES = list(places(create_app(SETTINGS).routes))
PAGES = [
    place
    for place in PLACES
    if isinstance(place, PagePath) and place.request_class is StaffRequest and place.pages
]
OPERATIONS = [
    operation for place in PLACES if isinstance(place, ApiPath) for operation in place.operations.values()
]
# For anybody, to read.
SIMPLE_PAGES = [place for place in PLACES if isinstance(place, PublicPage)]


def ways(paths: list[PagePath]) -> list[Way]:
    return [Way(page.method, page.path, page.permission) for path in paths for page in path.pages.values()]


GUARDED_PAGES = ways([page for page in PAGES if not page.is_public])
OPEN_PAGES = ways([page for page in PAGES if page.is_public])
CALLS = sorted({Way(one.method, one.path, one.guard.permission) for one in OPERATIONS}, key=name_of)
GUARDED = [way for way in CALLS if way.permission is not None]


@pytest.fixture(scope="module")
def clients(server: InProcessApp, keys: Keys) -> Iterator[dict[Scope | None, httpx.Client]]:
    """One for each scope, and one without a key."""
    opened: dict[Scope | None, httpx.Client] = {
        scope: integration_client(server.address, keys.issue(scopes=[scope]).text) for scope in Scope
    }
    opened[None] = integration_client(server.address, None)
    yield opened
    for client in opened.values():
        client.close()


def visit(person: Person, way: Way) -> tuple[int, str, str]:
    """Status, where to, and what is told; of an answer without an end, its beginning."""
    token = person.sent()["cookie"].partition(f"{SESSION}=")[2]
    form = {"csrf": csrf_token(token)} if way.method != "GET" else None
    headers = {**person.sent(), "sec-fetch-site": "same-origin"}
    with person.stream(way.method, way.address, data=form, headers=headers) as answer:
        text = answer.read().decode() if answer.status_code == 403 else ""
        return answer.status_code, answer.headers.get("location", ""), text


def call(client: httpx.Client, way: Way, **headers: str) -> httpx.Response:
    body: dict[str, Any] = {} if way.method in ("GET", "HEAD", "DELETE") else {"json": {}}
    return client.request(way.method, way.address, headers=headers, **body)


def test_every_place_is_one_that_these_tests_know() -> None:
    known = (PublicPage, PagePath, ApiPath, Unknown, PageFiles)
    # Below the public surfaces, what is not there is Starlette's own 404.
    strange = [place for place in PLACES if not isinstance(place, known)]
    assert [getattr(place, "__func__", place) for place in strange] == [Router.not_found] * 2
    assert len(PAGES) > 50
    assert len(OPERATIONS) > 50


def test_what_asks_for_no_permission_is_meant_to_be_for_anybody() -> None:
    open_paths = {way.path for way in CALLS if way.permission is None}
    open_paths |= {page.path for page in SIMPLE_PAGES} - {"/"}
    assert [path for path in open_paths if not path.startswith(OF_ANYBODY)] == []
    assert {way.path for way in OPEN_PAGES} == OF_STRANGERS
    for_all = {way.path for way in GUARDED_PAGES if way.permission is None} - ALSO_OF_WHOEVER_IS_SIGNED_IN
    assert [path for path in for_all if not path.startswith(OF_WHOEVER_IS_SIGNED_IN)] == []


def test_keys_staff_and_revoked_sales_are_for_admins_keys_alone() -> None:
    found = [way for way in GUARDED if any(part in way.path for part in ADMINS_ONLY)]
    assert len({way.path for way in found}) > len(ADMINS_ONLY)
    for way in found:
        assert [scope for scope in Scope if way.permission in SCOPE_PERMISSIONS[scope]] == [Scope.ADMIN], way


@pytest.mark.parametrize("way", GUARDED_PAGES, ids=name_of)
def test_a_page_is_for_the_roles_that_have_its_permission(people: People, way: Way) -> None:
    for role in Role:
        status, location, text = visit(people.signed_in(role), way)
        if way.permission is None or way.permission in ROLE_PERMISSIONS[role]:
            assert status != 403, (role, text)
            assert way.path in WAYS_OUT or not location.startswith(SIGN_IN), role
        else:
            assert (status, NOT_YOURS in text) == (403, True), role


@pytest.mark.parametrize("way", GUARDED_PAGES, ids=name_of)
def test_a_page_sends_strangers_to_the_sign_in(people: People, way: Way) -> None:
    status, location, _ = visit(people.stranger(), way)
    assert (status, location.partition("?")[0]) == (303, SIGN_IN)


@pytest.mark.parametrize("way", GUARDED_PAGES, ids=name_of)
def test_a_key_opens_no_page(clients: dict[Scope | None, httpx.Client], way: Way) -> None:
    answer = clients[Scope.ADMIN].request(way.method, way.address)
    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, SIGN_IN)


@pytest.mark.parametrize("way", OPEN_PAGES, ids=name_of)
def test_the_way_in_is_open(people: People, way: Way) -> None:
    status, location, _ = visit(people.stranger(), way._replace(method="GET"))
    assert status in (200, 404) or (status, location) == (303, SIGN_IN)


@pytest.mark.parametrize("way", GUARDED, ids=name_of)
def test_a_route_is_for_the_scopes_that_have_its_permission(
    clients: dict[Scope | None, httpx.Client], way: Way
) -> None:
    for scope in Scope:
        answer = call(clients[scope], way)
        assert answer.status_code < 500
        if way.permission in SCOPE_PERMISSIONS[scope]:
            assert answer.status_code not in (401, 403), (scope, answer.text)
        else:
            challenge = answer.headers.get("www-authenticate", "")
            assert (answer.status_code, "insufficient_scope" in challenge) == (403, True), scope


@pytest.mark.parametrize("way", GUARDED, ids=name_of)
def test_a_route_is_closed_without_a_key_and_to_every_session(
    clients: dict[Scope | None, httpx.Client], people: People, way: Way
) -> None:
    assert call(clients[None], way).status_code == 401
    for role in Role:
        assert call(clients[None], way, **people.signed_in(role).sent()).status_code == 401


@pytest.mark.parametrize("prefix", BELOW)
def test_whether_a_path_is_there_is_told_to_those_who_may_know(
    clients: dict[Scope | None, httpx.Client], prefix: str
) -> None:
    nowhere = Way("GET", f"{prefix}/nowhere", BELOW[prefix])
    assert call(clients[None], nowhere).status_code == 401
    for scope in Scope:
        expected = 404 if BELOW[prefix] in SCOPE_PERMISSIONS[scope] else 403
        assert call(clients[scope], nowhere).status_code == expected, scope


def test_nothing_else_is_below_a_prefix() -> None:
    assert len({id(place) for place in PLACES if isinstance(place, Unknown)}) == len(BELOW)
    unknown = [place for place in PLACES if isinstance(place, UnknownPage)]
    assert {place.request_class for place in unknown} == {StaffRequest, BuyerRequest}


def test_a_page_that_is_not_there_is_told_to_those_who_are_signed_in(people: People) -> None:
    nowhere = Way("GET", "/backoffice/nowhere", None)
    assert visit(people.stranger(), nowhere)[0] == 303
    assert {visit(people.signed_in(role), nowhere)[0] for role in Role} == {404}
