"""Operations run on the newest PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from holdfast.storage.database import Database, open_database


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def database(postgres_url: str) -> AsyncIterator[Database]:
    async with open_database(postgres_url) as opened:
        yield opened
