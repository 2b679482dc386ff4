"""An application behind our own HTTP, on a port of its own, in the loop of the test."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import uvicorn
from uvicorn.server import ServerState

from holdfast.web.http.connection import Application, HttpConnection
from holdfast.web.http.heads import KnownHeads


@asynccontextmanager
async def listening(
    application: Application, kept_seconds: float = 5, state: ServerState | None = None
) -> AsyncIterator[tuple[str, int]]:
    """Host and port."""
    config = uvicorn.Config(application)
    config.timeout_keep_alive = kept_seconds  # type: ignore[assignment]
    state, known_heads = state or ServerState(), KnownHeads()
    server = await asyncio.get_running_loop().create_server(
        lambda: HttpConnection(application, known_heads, config=config, server_state=state), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()
    finally:
        server.close()
        if state.tasks:
            # One that has answered may have a file to close.
            await asyncio.wait(state.tasks, timeout=0.5)
        for task in list(state.tasks):
            task.cancel()
        await asyncio.gather(*state.tasks, return_exceptions=True)


@asynccontextmanager
async def client_of(application: Application) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        listening(application) as (host, port),
        httpx.AsyncClient(base_url=f"http://{host}:{port}", trust_env=False) as client,
    ):
        yield client
