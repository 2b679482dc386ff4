"""The application in this process, without a database, and its API description."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from holdfast.web.openapi.document import openapi_document
from tests.support.in_process import app_with, client_of


@pytest.fixture(scope="session")
def app() -> Starlette:
    return app_with()


@pytest.fixture
async def browser(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with client_of(app) as client:
        yield client


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    return openapi_document()
