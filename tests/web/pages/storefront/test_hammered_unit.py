"""Everybody wants the same unit: one has it, all are told, and whoever only looks still sees the pages."""

import asyncio
from collections import Counter

import httpx

from tests.support.buying import offer_url
from tests.support.client import Unit
from tests.support.server import RunningServer
from tests.web.pages.storefront.buyers import project_page, unit_page

CLIENTS = 500
LOOKS = 10
_HOLD = "POST {}/hold HTTP/1.1\r\nHost: holdfast.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


async def status_of_hold(address: httpx.URL, unit: Unit) -> int:
    """By a connection of its own; a client that does more would be what is waited for."""
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(_HOLD.format(offer_url(unit)).encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return int(answer.split(maxsplit=2)[1])


async def test_five_hundred_at_one_unit_are_answered_and_so_is_a_visitor(
    real_server: RunningServer, stored: Unit
) -> None:
    address = httpx.URL(real_server.address)
    async with httpx.AsyncClient(base_url=address, timeout=None) as visitor:
        crowd = [asyncio.create_task(status_of_hold(address, stored)) for _ in range(CLIENTS)]
        looks = [
            (await visitor.get(page)).status_code
            for _ in range(LOOKS)
            for page in (project_page(stored.project), unit_page(stored))
        ]
        answers = Counter(await asyncio.gather(*crowd))
    assert answers == {201: 1, 409: CLIENTS - 1}
    assert set(looks) == {200}
