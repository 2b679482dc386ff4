"""Engine and session of the process."""

import os
from collections.abc import AsyncIterator

from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker, create_async_engine

URL = make_url(os.environ["BENCHMARK_DATABASE_URL"]).set(drivername="postgresql+asyncpg")
engine = create_async_engine(URL, pool_size=10, max_overflow=0)
Session = async_sessionmaker(engine, expire_on_commit=False)


async def session() -> AsyncIterator[AsyncSession]:
    async with Session() as opened:
        yield opened
