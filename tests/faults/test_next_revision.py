"""The schema of the next release is applied while this one serves."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from holdfast.domain.api_key import Scope
from tests.conftest import UNLIMITED
from tests.support import next_revision
from tests.support.bodies import full
from tests.support.keys import Keys
from tests.support.server import PATIENCE_SECONDS, RunningServer, serving
from tests.support.sql import Sql, as_owner

UNITS = "/v1/integration/projects/tower/units"
OFFERS = "/v1/storefront/projects/tower/units"
OFFICE = "/v1/backoffice/projects"
# More than there are connections, so that each kind of them is used before and after.
AT_ONCE = 8
ENOUGH = 15

Step = Callable[[httpx.AsyncClient, str, int], Awaitable[httpx.Response]]


@pytest.fixture
def key(postgres_url: str) -> str:
    with Sql(postgres_url) as sql:
        return Keys(sql, postgres_url).issue(scopes=tuple(Scope)).text


@pytest.fixture
def server(postgres_url: str, tmp_path: Path) -> Iterator[RunningServer]:
    with serving(tmp_path, {"HOLDFAST_DATABASE_URL": postgres_url, **UNLIMITED}) as running:
        yield running


async def put(http: httpx.AsyncClient, code: str, turn: int) -> httpx.Response:
    return await http.put(
        f"{UNITS}/{code}", json={**full(), **NUMBERS, "priceSar": turn, "bedrooms": turn % 9}
    )


async def patch(http: httpx.AsyncClient, code: str, turn: int) -> httpx.Response:
    status = ("unavailable", "available")[turn % 2]
    return await http.patch(f"{UNITS}/{code}", json={"status": status})


async def hold_and_cancel(http: httpx.AsyncClient, code: str, _: int) -> httpx.Response:
    headers = {"Authorization": ""}
    held = await http.post(f"{OFFERS}/{code}/hold", headers=headers)
    if held.status_code != httpx.codes.CREATED:
        return held
    headers = {"Authorization": f"Bearer {held.json()['token']}"}
    return await http.delete(f"/v1/storefront/bookings/{held.json()['reference']}", headers=headers)


async def read(http: httpx.AsyncClient, _: str, turn: int) -> httpx.Response:
    return await http.get((UNITS, "/v1/integration/events", "/readyz")[turn % 3])


async def add_project(http: httpx.AsyncClient, _: str, __: int) -> httpx.Response:
    return await http.post(OFFICE, json={"slug": f"p-{uuid4().hex}", "name": "Another"})


NUMBERS = {"areaSqm": 120.5, "vatRate": 15, "depositPercent": 2.5}
STEPS: tuple[Step, ...] = (put, patch, hold_and_cancel, read, add_project)


class Load:
    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self.statuses: Counter[int] = Counter()
        self._counted = asyncio.Condition()

    async def run(self, line: int) -> None:
        """One step after the other, on units of its own and on those of all."""
        turn = 0
        while True:
            turn += 1
            step = STEPS[(turn + line) % len(STEPS)]
            response = await step(self._http, f"A-{line if turn % 3 else 0}", turn)
            async with self._counted:
                self.statuses[response.status_code] += 1
                self._counted.notify_all()

    async def more(self) -> Counter[int]:
        """Wait for the answers to come, and return them."""
        self.statuses.clear()
        async with asyncio.timeout(PATIENCE_SECONDS), self._counted:
            await self._counted.wait_for(lambda: self.statuses.total() >= ENOUGH * AT_ONCE)
            return self.statuses.copy()


@pytest.mark.slow
async def test_requests_meet_the_next_revision_without_an_error_of_ours(
    server: RunningServer, postgres_url: str, key: str
) -> None:
    """In the moment of the change one may be asked to come again; the write path tries again by itself."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=server.address, headers=headers, timeout=60) as http:
        (await http.post(OFFICE, json={"slug": "tower", "name": "The Tower"})).raise_for_status()
        for line in range(AT_ONCE + 1):
            (await put(http, f"A-{line}", 1)).raise_for_status()
        load = Load(http)
        running = [asyncio.create_task(load.run(line)) for line in range(1, AT_ONCE + 1)]
        try:
            before = await load.more()
            load.statuses.clear()
            await next_revision.apply(as_owner(postgres_url))
            during = load.statuses + await load.more()
            after = await load.more()
        finally:
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
    good = {200, 201, 204, 409}
    assert set(before) <= good
    assert set(during) <= good | {503}
    assert set(after) <= good
    assert after[201] > 0
