"""The pages in this process, behind the same front as in the real application."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from holdfast.web.front import Front
from holdfast.web.openapi.document import openapi_document
from holdfast.web.pages import page_places
from tests.support.http_serving import listening


@pytest.fixture(scope="session")
def pages() -> Front:
    return Front(page_places())


@pytest.fixture
async def browser(pages: Front) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        listening(pages) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def document() -> dict[str, Any]:
    return openapi_document()
