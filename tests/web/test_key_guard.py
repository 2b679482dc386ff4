"""Which scopes open which routes."""

from collections.abc import AsyncIterator

import httpx
import pytest

from holdfast.domain.api_key import Scope
from holdfast.domain.permissions import Permission
from holdfast.operations import api_keys
from holdfast.operations.api_keys import NewApiKey
from holdfast.storage.database import Database
from holdfast.web.api.routes import ApiRoutes, mounted
from holdfast.web.json import JsonResponse
from holdfast.web.request import Request
from tests.support.in_process import app_with, client_of
from tests.support.problems import problem

PERMISSIONS = {
    "/integration": Permission.INTEGRATE,
    "/backoffice": Permission.SELL,
    "/confirm-deposit": Permission.CONFIRM_DEPOSIT,
    "/keys": Permission.MANAGE_KEYS,
}
OPENED_BY = {
    "/integration": {Scope.INTEGRATION},
    "/backoffice": {Scope.BACKOFFICE, Scope.ADMIN},
    "/confirm-deposit": {Scope.PAYMENTS, Scope.BACKOFFICE, Scope.ADMIN},
    "/keys": {Scope.ADMIN},
}
NAMED = {
    "/integration": Scope.INTEGRATION,
    "/backoffice": Scope.BACKOFFICE,
    "/confirm-deposit": Scope.PAYMENTS,
    "/keys": Scope.ADMIN,
}


@pytest.fixture
async def database(module_postgres_url: str) -> AsyncIterator[Database]:
    async with Database(module_postgres_url) as opened:
        yield opened


@pytest.fixture
async def http(module_postgres_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async def respond(_: Request) -> JsonResponse:
        return JsonResponse("open")

    routes = ApiRoutes("/v1/tests", "Tests")
    for path, permission in PERMISSIONS.items():
        routes.get(path, summary="A route", permission=permission)(respond)
    app = app_with(*mounted("/v1/tests", [routes]), database_url=module_postgres_url)
    async with app.router.lifespan_context(app), client_of(app) as client:
        client.base_url = client.base_url.join("/v1/tests")
        yield client


async def answer(http: httpx.AsyncClient, database: Database, path: str, *scopes: Scope) -> httpx.Response:
    issued = await api_keys.issue(database, NewApiKey("a key of the tests", scopes))
    return await http.get(path, headers={"Authorization": f"Bearer {issued.text}"})


@pytest.mark.parametrize("path", PERMISSIONS)
async def test_a_route_is_opened_by_its_scopes_and_no_others(
    http: httpx.AsyncClient, database: Database, path: str
) -> None:
    opening = {scope for scope in Scope if (await answer(http, database, path, scope)).status_code == 200}
    assert opening == OPENED_BY[path]


@pytest.mark.parametrize("path", PERMISSIONS)
async def test_the_refusal_names_the_narrowest_scope(
    http: httpx.AsyncClient, database: Database, path: str
) -> None:
    other = next(scope for scope in Scope if scope not in OPENED_BY[path])
    response = await answer(http, database, path, other)
    assert f"`{NAMED[path]}`" in problem(response, 403)["detail"]
    assert f'scope="{NAMED[path]}"' in response.headers["www-authenticate"]


async def test_one_of_several_scopes_of_a_key_is_enough(http: httpx.AsyncClient, database: Database) -> None:
    for path in ("/integration", "/confirm-deposit"):
        response = await answer(http, database, path, Scope.INTEGRATION, Scope.ADMIN)
        assert response.status_code == 200


@pytest.mark.parametrize("path", PERMISSIONS)
async def test_without_a_token_no_scope_is_told(http: httpx.AsyncClient, path: str) -> None:
    response = await http.get(path)
    problem(response, 401)
    assert response.headers["www-authenticate"] == "Bearer"


async def test_a_wrong_method_is_told_to_those_who_may_use_the_right_one(
    http: httpx.AsyncClient, database: Database
) -> None:
    for scope, status in ((Scope.BACKOFFICE, 405), (Scope.PAYMENTS, 403)):
        issued = await api_keys.issue(database, NewApiKey("a key of the tests", [scope]))
        response = await http.delete("/backoffice", headers={"Authorization": f"Bearer {issued.text}"})
        problem(response, status)
