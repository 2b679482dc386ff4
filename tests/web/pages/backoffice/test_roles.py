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
from holdfast.web.api.routes import ApiPath, Unknown
from holdfast.web.pages.backoffice.base import StaffRequest
from holdfast.web.pages.base import PublicPage
from holdfast.web.pages.forms import csrf_token
from holdfast.web.pages.routes import PagePath, UnknownPage
from holdfast.web.pages.service import PageFiles
from holdfast.web.pages.storefront.base import BuyerRequest
from tests.support.app import InProcessApp
from tests.support.client import integration_client
from tests.support.in_process import app_with
from tests.support.keys import Keys
from tests.support.staff_client import People, Person

SESSION = "__Host-holdfast_session"
SIGN_IN = "/backoffice/sign-in"
ACCOUNT = "/backoffice/account"
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
# The parts of paths that ask for each permission; the first that fits counts.
FORMS = {
    Permission.REVOKE_SALE: ("/revoke-sale",),
    Permission.CONFIRM_DEPOSIT: ("/confirm-deposit",),
    Permission.MANAGE_WEBHOOKS: ("/webhooks/", "/deliveries/"),
    Permission.SEE_WEBHOOKS: ("/announcements/",),
    Permission.MANAGE_KEYS: ("/keys/",),
    Permission.ADMINISTER: ("/staff/",),
    Permission.SELL: ("/projects/", "/bookings/", "/new-project", "/seller"),
}
READ = {
    Permission.MANAGE_WEBHOOKS: ("/webhooks/new", "/webhooks/{id}/edit", "/webhooks/{id}/recover"),
    Permission.SEE_WEBHOOKS: ("/webhooks", "/deliveries"),
    Permission.MANAGE_KEYS: ("/keys",),
    Permission.ADMINISTER: ("/staff",),
    Permission.SEE_AUDIT: ("/audit",),
    Permission.SELL: ("/import", "/layout", "/new-project", "/template."),
    Permission.SEE_BOOKINGS: ("/bookings", "/emails"),
    Permission.SEE_UNITS: ("/projects", "/seller"),
}
BELOW = {"/v1/integration": Permission.INTEGRATE, "/v1/backoffice": Permission.SEE_UNITS}
ADMINS_ONLY = ("/keys", "/staff", "/revoke-sale")


class Way(NamedTuple):
    """One method at one path."""

    method: str
    path: str
    permission: Permission | None

    @property
    def address(self) -> str:
        return self.path.format(**NAMES)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def places(routes: Sequence[BaseRoute]) -> Iterator[object]:
    """The application behind each route, and behind whatever else is asked for below a mount."""
    for route in routes:
        if isinstance(route, Mount):
            yield from places(route.routes)
            yield route.app.default if isinstance(route.app, Router) else route.app
        else:
            assert isinstance(route, Route)
            yield route.endpoint


PLACES = list(places(app_with().routes))
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
CALLS = sorted({Way(one.method, one.path, one.guard.permission) for one in OPERATIONS}, key=str)
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


@pytest.fixture(scope="module")
def staff(people: People) -> dict[Role | None, Person]:
    """One of each role, and a stranger."""
    return {None: people.stranger(), **{role: people.signed_in(role) for role in Role}}


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


def test_every_page_asks_for_the_permission_that_is_meant() -> None:
    open_paths = {way.path for way in CALLS if way.permission is None}
    open_paths |= {page.path for page in SIMPLE_PAGES} - {"/"}
    assert [path for path in open_paths if not path.startswith(OF_ANYBODY)] == []
    assert {way.path for way in OPEN_PAGES} == OF_STRANGERS
    for way in GUARDED_PAGES:
        rules = READ if way.method == "GET" else FORMS
        fitting = (found for found, parts in rules.items() if any(part in way.path for part in parts))
        meant = next(fitting, None)
        assert way.permission == meant, way
    own = {way.path for way in GUARDED_PAGES if way.permission is None} - {
        "/backoffice",
        "/backoffice/settings",
    }
    assert [path for path in own if not path.startswith(("/backoffice/account", *WAYS_OUT))] == []


def test_keys_staff_and_revoked_sales_are_for_admins_keys_alone() -> None:
    found = [way for way in GUARDED if any(part in way.path for part in ADMINS_ONLY)]
    assert len({way.path for way in found}) > len(ADMINS_ONLY)
    for way in found:
        assert [scope for scope in Scope if way.permission in SCOPE_PERMISSIONS[scope]] == [Scope.ADMIN], way


@pytest.mark.parametrize("way", GUARDED_PAGES, ids=str)
def test_a_page_is_for_the_roles_that_have_its_permission(
    people: People, staff: dict[Role | None, Person], clients: dict[Scope | None, httpx.Client], way: Way
) -> None:
    admitted = [role for role in Role if way.permission in (None, *ROLE_PERMISSIONS[role])]
    for role in set(Role) - set(admitted):
        status, _, text = visit(staff[role], way)
        assert (status, NOT_YOURS in text) == (403, True), role
    # One of them is enough, and one that leaves needs a session of its own.
    role = admitted[-1]
    status, location, text = visit(people.signed_in(role) if way.path in WAYS_OUT else staff[role], way)
    assert status != 403, (role, text)
    assert way.path in WAYS_OUT or not location.startswith(SIGN_IN), role
    status, location, _ = visit(staff[None], way)
    assert (status, location.partition("?")[0]) == (303, SIGN_IN)
    answer = clients[Scope.ADMIN].request(way.method, way.address)
    assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, SIGN_IN)


def test_without_the_second_factor_that_the_role_requires_nothing_is_open_but_to_set_it_up(
    strict_people: People,
) -> None:
    person, open_ways = strict_people.signed_in("sales"), set()
    for way in (*GUARDED_PAGES, Way("GET", "/backoffice/nowhere", None), Way("POST", "/backoffice", None)):
        if way.path == "/backoffice/sign-out":
            continue
        status, location, _ = visit(person, way)
        if (status, location) != (303, ACCOUNT) or way.path == ACCOUNT:
            open_ways.add(str(way))
    own = {f"POST {ACCOUNT}/{form}" for form in ("preferences", "second-factor", "second-factor/confirm")}
    assert open_ways == {f"GET {ACCOUNT}", *own}


@pytest.mark.parametrize("way", OPEN_PAGES, ids=str)
def test_the_way_in_is_open(staff: dict[Role | None, Person], way: Way) -> None:
    status, location, _ = visit(staff[None], way._replace(method="GET"))
    assert status in (200, 404) or (status, location) == (303, SIGN_IN)


@pytest.mark.parametrize("way", GUARDED, ids=str)
def test_a_route_is_for_the_scopes_that_have_its_permission_and_for_no_session(
    staff: dict[Role | None, Person], clients: dict[Scope | None, httpx.Client], way: Way
) -> None:
    for scope in Scope:
        answer = call(clients[scope], way)
        if way.permission in SCOPE_PERMISSIONS[scope]:
            assert answer.status_code not in (401, 403), (scope, answer.text)
        else:
            challenge = answer.headers.get("www-authenticate", "")
            assert (answer.status_code, "insufficient_scope" in challenge) == (403, True), scope
    assert call(clients[None], way).status_code == 401
    assert call(clients[None], way, **staff[Role.ADMIN].sent()).status_code == 401


@pytest.mark.parametrize("prefix", BELOW)
def test_strangers_learn_of_no_path(clients: dict[Scope | None, httpx.Client], prefix: str) -> None:
    nowhere = Way("GET", f"{prefix}/nowhere", BELOW[prefix])
    assert call(clients[None], nowhere).status_code == 401
    for scope in Scope:
        expected = 404 if BELOW[prefix] in SCOPE_PERMISSIONS[scope] else 403
        assert call(clients[scope], nowhere).status_code == expected, scope


def test_nothing_else_is_below_a_prefix(staff: dict[Role | None, Person]) -> None:
    assert len({id(place) for place in PLACES if isinstance(place, Unknown)}) == len(BELOW)
    unknown = [place for place in PLACES if isinstance(place, UnknownPage)]
    assert {place.request_class for place in unknown} == {StaffRequest, BuyerRequest}
    nowhere = Way("GET", "/backoffice/nowhere", None)
    assert visit(staff[None], nowhere)[0] == 303
    assert {visit(staff[role], nowhere)[0] for role in Role} == {404}
