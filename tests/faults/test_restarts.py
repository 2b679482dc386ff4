"""Buyers buy while the database is restarted or all is killed: what was acknowledged is there, once."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.storage.embedded.server import using_embedded
from tests.support import server as servers
from tests.support.clusters import Cluster
from tests.support.concurrent_requests import Answer, Line, Request, open_lines
from tests.support.history_checker import faults_of
from tests.support.processes import kill_family, postmaster
from tests.support.sales_project import NO_HOLD_LIMIT, Market, expect, new_market, open_market, stock_up
from tests.support.server import PATIENCE_SECONDS
from tests.support.sql import Sql
from tests.support.unit_history import read_histories

UNITS = [f"A-{number}" for number in range(4)]
BUYERS_EACH = 2
ACKNOWLEDGED_BETWEEN = 100
# A hold whose answer was lost is nobody's; it blocks its unit no longer than this.
SETTINGS = NO_HOLD_LIMIT | {"HOLDFAST_HOLD_SECONDS": "1"}


@dataclass
class Load:
    market: Market
    over: bool = False
    answers: dict[str, int] = field(default_factory=dict)
    """The last of each request, by its id, which it keeps when it is repeated."""
    unavailable: int = 0
    acknowledged: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def run(self, *interruptions: Callable[[], None], end: Callable[[], None] = lambda: None) -> None:
        """With some progress before and after each interruption; ``end`` may be the end of the server."""
        await stock_up(self.market, UNITS)
        async with (
            open_lines(self.market.address, len(UNITS) * (BUYERS_EACH + 1)) as lines,
            asyncio.TaskGroup() as group,
        ):
            for number, line in enumerate(lines):
                code = UNITS[number % len(UNITS)]
                client = self._erp if number < len(UNITS) else self._buyer
                group.create_task(self._run_until_the_end(client(line, code, number)))
            for interrupt in interruptions:
                await self._get_on()
                await asyncio.to_thread(interrupt)
            await self._get_on()
            self.over = True
            await asyncio.to_thread(end)

    async def _get_on(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            for _ in range(ACKNOWLEDGED_BETWEEN):
                await self.acknowledged.acquire()

    async def _run_until_the_end(self, client: Coroutine[Any, Any, None]) -> None:
        try:
            await client
        except (OSError, asyncio.IncompleteReadError):
            assert self.over, "the server has hung up"

    async def _erp(self, line: Line, code: str, _: int) -> None:
        number = 0
        while not self.over:
            number += 1
            await self._ask(line, self.market.patch(code, description=str(number)), 200, 503)

    async def _buyer(self, line: Line, code: str, number: int) -> None:
        """Half of the holds are named, and may so be repeated."""
        chance = random.Random(number)
        while not self.over:
            named = chance.random() < 0.5
            request = self.market.hold(code, f"{chance.random()}" if named else None)
            answer = await (self._insist if named else self._ask)(line, request, 201, 409, 503)
            if answer.status == 201:
                await self._go_on(line, answer.body, pays=chance.random() < 0.3)

    async def _go_on(self, line: Line, held: dict[str, Any], *, pays: bool) -> None:
        if (await self._insist(line, self.market.sign(held), 200, 409)).status == 409:
            return
        if pays:
            await self._insist(line, self.market.confirm_deposit(held), 200)
            await self._insist(line, self.market.staff_on_booking(held, "cancel"), 200, 409)
        else:
            await self._insist(line, self.market.cancel(held), 204, 409)

    async def _insist(self, line: Line, request: Request, *statuses: int) -> Answer:
        name = self._new_name()
        while (answer := await self._ask(line, request, *statuses, 503, name=name)).status == 503:
            pass
        return answer

    def _new_name(self) -> str:
        name = f"request-{len(self.answers)}"
        self.answers[name] = 0
        return name

    async def _ask(self, line: Line, request: Request, *statuses: int, name: str | None = None) -> Answer:
        name = name or self._new_name()
        answer = await line.ask(request._replace(headers=(*request.headers, ("X-Request-Id", name))))
        self.answers[name] = expect(answer, *statuses).status
        if answer.status == 503:
            assert int(answer.headers["retry-after"]) >= 1
            self.unavailable += 1
            # Not as long as it was told, and yet the server is left some time to come back.
            await asyncio.sleep(0.05)
        elif answer.status == 409:
            assert answer.reason in ("not-available", "hold-lapsed", "transition-not-allowed")
            await asyncio.sleep(0.01)
        else:
            self.acknowledged.release()
        return answer

    def assert_stored(self, url: str) -> None:
        """All that was acknowledged, and nothing twice or unasked."""
        with Sql(url) as sql:
            histories = read_histories(sql, self.market.slug)
        assert [fault for history in histories for fault in faults_of(history)] == []
        entries = [entry for history in histories for entry in history.entries]
        asked = [entry for entry in entries if entry["actor_kind"] != "clock" and entry["action"] != "create"]
        stored = Counter(entry["request_id"] for entry in asked)
        assert set(stored.values()) == {1}
        # Of what had no answer, or was last answered with 503, nobody knew whether it was stored.
        assert {self.answers[name] for name in stored} <= {0, 200, 201, 204, 503}
        assert {name for name, status in self.answers.items() if 200 <= status < 300} <= set(stored)


def test_what_buyers_were_told_survives_restarts_of_the_database(tmp_path: Path) -> None:
    """After a crash, and in good order; while it is away the answer is 503."""
    with Cluster(tmp_path / "restarted") as cluster:

        def restart(stop: Callable[[], None]) -> None:
            stop()
            cluster.start()

        url = cluster.new_database()
        with open_market(tmp_path, url, "--processes", "2", settings=SETTINGS) as (market, _):
            load = Load(market)
            asyncio.run(load.run(partial(restart, cluster.crash), partial(restart, cluster.stop)))
        load.assert_stored(url)
    assert load.unavailable > 0


@pytest.mark.slow
@pytest.mark.parametrize("database_too", [False, True], ids=["serve", "serve and its database"])
def test_what_buyers_were_told_survives_kill_9(tmp_path: Path, database_too: bool) -> None:
    data = tmp_path / "data"
    settings = {**SETTINGS, "HOLDFAST_DATA_DIR": str(data)}
    with servers.serving(tmp_path, settings) as server:
        with using_embedded(data) as url:
            load = Load(new_market(server.address, url))
        database = postmaster(data)
        assert database is not None
        killed = [database, *database.children()] if database_too else []
        asyncio.run(load.run(end=partial(kill_family, server, *killed)))
    with servers.serving(tmp_path, settings), using_embedded(data) as url:
        load.assert_stored(url)
