"""How many may watch live at a time, for an address and in all. The peer is a trusted proxy."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network

import httpx
import pytest

from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.front import Front
from holdfast.web.html.live import event
from holdfast.web.routing import resource
from holdfast.web.storefront.pages.live_seats import LiveSeats, SeatedStream
from tests.support.http_serving import client_of
from tests.support.problems import problem


class Silence:
    """Nothing happens, ever."""

    async def arrival(self) -> None:
        await asyncio.Event().wait()

    def take(self) -> bytes:
        return b""

    def beat(self) -> bytes:
        return event("beat", b"{}")

    def close(self) -> None:
        pass


async def everybody_may() -> bool:
    return True


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    """Two seats for an address, three in all."""
    seats = LiveSeats(ClientAddresses((ip_network("127.0.0.0/8"),)), per_address=2, in_all=3)

    async def watch(call: Call) -> SeatedStream:
        return SeatedStream(Silence(), everybody_may, seats.take(call))

    async with client_of(Front([resource("/live", GET=watch)])) as client:
        yield client


def coming_from(address: str) -> dict[str, str]:
    return {"x-forwarded-for": address}


@asynccontextmanager
async def watching(http: httpx.AsyncClient, address: str) -> AsyncIterator[None]:
    async with http.stream("GET", "/live", headers=coming_from(address)) as response:
        assert response.status_code == 200
        yield


async def test_an_address_has_so_many_seats_and_is_told_when_they_are_taken(http: httpx.AsyncClient) -> None:
    async with watching(http, "192.0.2.1"), watching(http, "192.0.2.1"):
        refused = await http.get("/live", headers=coming_from("192.0.2.1"))
        assert "This address" in problem(refused, 429)["detail"]
        assert refused.headers["retry-after"] == "60"
        async with watching(http, "192.0.2.2"):
            pass


async def test_the_machine_itself_has_only_the_limit_of_all(http: httpx.AsyncClient) -> None:
    async with watching(http, "127.0.0.1"), watching(http, "127.0.0.1"), watching(http, "127.0.0.1"):
        refused = await http.get("/live", headers=coming_from("192.0.2.1"))
        assert "no place for more" in problem(refused, 429)["detail"]


async def test_a_seat_is_free_again_when_its_watcher_has_left(http: httpx.AsyncClient) -> None:
    async with watching(http, "192.0.2.1"), watching(http, "192.0.2.1"):
        pass
    async with asyncio.timeout(30):
        while (await http.head("/live", headers=coming_from("192.0.2.1"))).status_code == 429:
            pass
    async with watching(http, "192.0.2.1"):
        pass


async def test_the_head_of_a_stream_leaves_its_seat(http: httpx.AsyncClient) -> None:
    for _ in range(5):
        assert (await http.head("/live", headers=coming_from("192.0.2.1"))).status_code == 200
