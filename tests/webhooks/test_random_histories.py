"""Random histories of deliveries: whatever happens in whatever order, each of them ends, and is counted."""

import random
from collections import defaultdict
from uuid import UUID

import pytest

from holdfast.domain.delivery import ClaimedDelivery, Schedule
from holdfast.domain.endpoint import Endpoint
from holdfast.domain.errors import DomainError
from holdfast.domain.event import EventName
from holdfast.operations.delivery_queue import DeliveryQueue
from holdfast.storage.database import Database
from tests.support.delivery_engine import OFF, ON, Engine, an_engine, made
from tests.support.inventory import replacement, store
from tests.support.sales import new_units

ATTEMPTS = 3
STEPS = 120
CODES = [f"A-{number}" for number in range(4)]
SELECTIONS = (tuple(EventName), (EventName.AVAILABLE,), (EventName.UNAVAILABLE,))
VERSION = "select unit_version from pending_delivery where id = $1"


class History:
    """Two workers, a few endpoints and units, and chance."""

    def __init__(self, engine: Engine, project_id: UUID, chance: random.Random) -> None:
        self.engine = engine
        self.project_id = project_id
        self.chance = chance
        self.workers = [DeliveryQueue(engine.database, engine.schedule, 35) for _ in range(2)]
        self.endpoints: list[Endpoint] = []
        self.claimed: list[ClaimedDelivery] = []
        self.is_off: dict[str, bool] = defaultdict(bool)
        self.last_version: dict[tuple[UUID, UUID], int] = defaultdict(int)
        self.first_attempts: dict[tuple[UUID, UUID], UUID] = {}

    async def step(self) -> None:
        steps = {
            self.change_unit: 30, self.claim: 30, self.answer: 30, self.let_time_pass: 8, self.die: 3,
            self.resend: 4, self.change_endpoint: 8, self.remove: 1,
        }  # fmt: skip
        (chosen,) = self.chance.choices(list(steps), list(steps.values()))
        await chosen()

    async def change_unit(self) -> None:
        code = self.chance.choice(CODES)
        self.is_off[code] = not self.is_off[code]
        status = OFF if self.is_off[code] else ON
        await store(self.engine.database, replacement(self.project_id, code, status=status))

    async def claim(self) -> None:
        claimed = await self.chance.choice(self.workers).claim(self.chance.randint(1, 6))
        for one in claimed:
            if one.unit_id is not None and not one.progress.attempts and one.progress.series == 1:
                queue = (one.endpoint_id, one.unit_id)
                version = await self.engine.value(VERSION, one.delivery_id)
                assert queue not in self.first_attempts, "two first attempts of one unit overlap"
                assert self.last_version[queue] < version, "out of order"
                self.last_version[queue] = version
                self.first_attempts[queue] = one.delivery_id
        self.claimed += claimed

    def take(self, count: int) -> list[ClaimedDelivery]:
        self.chance.shuffle(self.claimed)
        ending, self.claimed = self.claimed[:count], self.claimed[count:]
        ids = {one.delivery_id for one in ending}
        self.first_attempts = {queue: one for queue, one in self.first_attempts.items() if one not in ids}
        return ending

    async def answer(self) -> None:
        await self.answer_some(self.chance.randint(0, len(self.claimed)))

    async def answer_some(self, count: int) -> None:
        codes = [200, 200, 500, 410, None]
        ending = [made(one, self.engine.schedule, self.chance.choice(codes)) for one in self.take(count)]
        await self.chance.choice(self.workers).record(ending)

    async def die(self) -> None:
        """All claims are lost with their worker, and recorded too late."""
        lost = self.take(len(self.claimed))
        await self.engine.let_leases_run_out()
        await self.workers[0].rescue()
        late = [made(one, self.engine.schedule, self.chance.choice([200, 500])) for one in lost]
        assert await self.workers[1].record(late) == set()

    async def let_time_pass(self) -> None:
        await self.engine.execute("update pending_delivery set due_at = due_at - interval '1 day'")
        if self.chance.random() < 0.5:
            await self.engine.tidying.run()

    async def resend(self) -> None:
        if known := await self.engine.log():
            try:
                await self.engine.resend(self.chance.choice(known).id)
            except DomainError:
                return

    async def change_endpoint(self) -> None:
        at = self.chance.randrange(len(self.endpoints))
        config = self.endpoints[at].config
        changes: list[tuple[str, object]] = [("paused", not config.paused), ("ordered", not config.ordered)]
        name, value = self.chance.choice([*changes, ("events", self.chance.choice(SELECTIONS))])
        self.endpoints[at] = await self.engine.change(self.endpoints[at], **{name: value})

    async def remove(self) -> None:
        if len(self.endpoints) > 1:
            await self.engine.remove(self.endpoints.pop(self.chance.randrange(len(self.endpoints))))

    async def end(self) -> None:
        """Resume all endpoints, and go on until nothing is left."""
        for endpoint in self.endpoints:
            await self.engine.change(endpoint, paused=False)
        for _ in range(1000):
            await self.answer_some(len(self.claimed))
            await self.let_time_pass()
            await self.claim()
            if not self.claimed and not await self.engine.value("select count(*) from pending_delivery"):
                return
        raise AssertionError(await self.engine.rows("select * from pending_delivery"))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
async def test_whatever_happens_every_delivery_ends_once(database: Database, seed: int) -> None:
    async with an_engine(database, schedule=Schedule(0.001, ATTEMPTS)) as engine:
        history = History(engine, await new_units(database, *CODES), random.Random(seed))
        endpoints = [await engine.endpoint(ordered=it == 1, max_in_flight=1 + 3 * it) for it in range(3)]
        history.endpoints = list(endpoints)
        for _ in range(STEPS):
            await history.step()
        await history.end()
        await check(engine, endpoints)


async def check(engine: Engine, endpoints: list[Endpoint]) -> None:
    assert await engine.value("select count(*) from in_flight") == 0
    for endpoint in endpoints:
        counts = (await engine.deliveries.reconcile(endpoint.id, None)).counts
        assert (counts.pending, counts.missing, counts.forgotten) == (0, 0, 0)
        assert counts.events == counts.delivered + counts.failed + counts.cancelled
    triggers: dict[UUID, list[str]] = defaultdict(list)
    attempts = "select delivery_id, number, trigger from attempt order by delivery_id, number"
    for delivery_id, number, trigger in await engine.rows(attempts):
        triggers[delivery_id].append(trigger)
        assert number == len(triggers[delivery_id])
        # No series has more attempts than the schedule.
        assert triggers[delivery_id][-ATTEMPTS:] != ["retry"] * ATTEMPTS
    counted = await engine.rows("select id, attempts from ended_delivery where attempts > 0")
    assert dict(counted) == {delivery_id: len(made) for delivery_id, made in triggers.items()}
