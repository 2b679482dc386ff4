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

# Of each path: what it permits, and the scopes that open it, the narrowest first.
ROUTES = {
    "/integration": (Permission.INTEGRATE, [Scope.INTEGRATION]),
    "/backoffice": (Permission.SELL, [Scope.BACKOFFICE, Scope.ADMIN]),
    "/confirm-deposit": (Permission.CONFIRM_DEPOSIT, [Scope.PAYMENTS, Scope.BACKOFFICE, Scope.ADMIN]),
    "/keys": (Permission.MANAGE_KEYS, [Scope.ADMIN]),
}


@pytest.fixture
async def http(postgres_url: str) -> AsyncIterator[httpx.AsyncClient]:
    async def respond(_: Request) -> JsonResponse:
        return JsonResponse("open")

    routes = ApiRoutes("/v1/tests", "Tests")
    for path, (permission, _) in ROUTES.items():
        routes.get(path, summary="A route", permission=permission)(respond)
    app = app_with(*mounted("/v1/tests", [routes]), database_url=postgres_url)
    async with app.router.lifespan_context(app), client_of(app) as client:
        client.base_url = client.base_url.join("/v1/tests")
        yield client


async def with_scopes(database: Database, *scopes: Scope) -> dict[str, str]:
    issued = await api_keys.issue(database, NewApiKey("a key of the tests", scopes))
    return {"Authorization": f"Bearer {issued.text}"}


async def test_a_route_is_opened_by_its_scopes_and_the_refusal_names_the_narrowest(
    http: httpx.AsyncClient, database: Database
) -> None:
    for scope in Scope:
        headers = await with_scopes(database, scope)
        for path, (_, opening) in ROUTES.items():
            response = await http.get(path, headers=headers)
            if scope in opening:
                assert response.status_code == 200
            else:
                assert f"`{opening[0]}`" in problem(response, 403)["detail"]
                assert f'scope="{opening[0]}"' in response.headers["www-authenticate"]


async def test_one_of_several_scopes_of_a_key_is_enough(http: httpx.AsyncClient, database: Database) -> None:
    headers = await with_scopes(database, Scope.INTEGRATION, Scope.ADMIN)
    for path in ("/integration", "/confirm-deposit"):
        assert (await http.get(path, headers=headers)).status_code == 200


async def test_without_a_token_no_scope_is_told(http: httpx.AsyncClient) -> None:
    for path in ROUTES:
        response = await http.get(path)
        problem(response, 401)
        assert response.headers["www-authenticate"] == "Bearer"


async def test_a_wrong_method_is_told_to_those_who_may_use_the_right_one(
    http: httpx.AsyncClient, database: Database
) -> None:
    for scope, status in ((Scope.BACKOFFICE, 405), (Scope.PAYMENTS, 403)):
        problem(await http.delete("/backoffice", headers=await with_scopes(database, scope)), status)
