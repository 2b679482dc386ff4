"""Storage runs on every PostgreSQL that the wheel has."""

from collections.abc import AsyncIterator

import pytest

from holdfast.storage.database import Database, open_database


@pytest.fixture(scope="session", params=[16, 18], ids=["postgres16", "postgres18"])
def postgres_version(request: pytest.FixtureRequest) -> int:
    version: int = request.param
    return version


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    async with open_database(postgres_url) as opened:
        yield opened
