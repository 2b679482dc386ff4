"""The delivery engine on real PostgreSQL, in one process."""

from collections.abc import AsyncIterator

import pytest

from holdfast.storage.database import Database
from tests.support.delivery_engine import Engine, an_engine


@pytest.fixture
async def engine(database: Database) -> AsyncIterator[Engine]:
    async with an_engine(database) as running:
        yield running
