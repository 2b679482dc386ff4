"""Random lives of deliveries: whatever happens in whatever order, each of them ends, and is accounted for."""

import random
from collections import defaultdict
from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
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
EVERY_EVENT = tuple(EventName)
LATER = "update pending_delivery set due_at = due_at - interval '1 day'"
SERIES = """
    select delivery_id, number, trigger, endpoint_id, unit_id, unit_version from attempt
    join (
        select id, endpoint_id, unit_id, unit_version from ended_delivery
    ) as delivery on delivery.id = attempt.delivery_id
    order by delivery_id, number
"""


class World:
    """Two workers, a few endpoints and units, and chance."""

    def __init__(self, engine: Engine, project_id: UUID, chance: random.Random) -> None:
        self.engine = engine
        self.project_id = project_id
        self.chance = chance
        self.workers = [DeliveryQueue(engine.database, engine.schedule, 35) for _ in range(2)]
        self.endpoints: list[Endpoint] = []
        self.held: list[ClaimedDelivery] = []
        self.is_off: dict[str, bool] = defaultdict(bool)
        self.first_sent: dict[tuple[UUID, UUID], list[int]] = defaultdict(list)
        self.on_first_way: dict[tuple[UUID, UUID], set[UUID]] = defaultdict(set)

    async def step(self) -> None:
        steps = {
            self.change_unit: 30, self.claim: 30, self.answer: 30, self.let_time_pass: 8, self.die: 3,
            self.resend: 4, self.switch_pause: 3, self.choose: 3, self.remove: 1, self.switch_order: 2,
        }  # fmt: skip
        (taken,) = self.chance.choices(list(steps), list(steps.values()))
        await taken()

    async def change_unit(self) -> None:
        code = self.chance.choice(CODES)
        self.is_off[code] = not self.is_off[code]
        status = OFF if self.is_off[code] else ON
        await store(self.engine.database, replacement(self.project_id, code, status=status))

    async def claim(self) -> None:
        claimed = await self.chance.choice(self.workers).claim(self.chance.randint(1, 6))
        for one in claimed:
            await self._note_first(one)
        self.held += claimed

    async def _note_first(self, one: ClaimedDelivery) -> None:
        if one.unit_id is None or one.progress.attempts or one.progress.series > 1:
            return
        lane = (one.endpoint_id, one.unit_id)
        version = await self.engine.value(
            "select unit_version from pending_delivery where id = $1", one.delivery_id
        )
        assert not self.on_first_way[lane], "two first attempts of one unit overlap"
        assert not self.first_sent[lane] or self.first_sent[lane][-1] < version, "out of order"
        self.first_sent[lane].append(version)
        self.on_first_way[lane].add(one.delivery_id)

    async def answer(self, *, everything: bool = False) -> None:
        count = len(self.held) if everything else self.chance.randint(0, len(self.held))
        self.chance.shuffle(self.held)
        ending, self.held = self.held[:count], self.held[count:]
        results = [
            made(one, self.engine.schedule, self.chance.choice([200, 200, 500, 410, None])) for one in ending
        ]
        await self.chance.choice(self.workers).record(results)
        self._forget(ending)

    def _forget(self, ending: list[ClaimedDelivery]) -> None:
        for one in ending:
            if one.unit_id is not None:
                self.on_first_way[one.endpoint_id, one.unit_id].discard(one.delivery_id)

    async def die(self) -> None:
        """All that is held is lost with its worker; some of it is recorded too late."""
        lost, self.held = self.held, []
        await self.engine.let_leases_run_out()
        await self.workers[0].rescue()
        late = [made(one, self.engine.schedule, self.chance.choice([200, 500])) for one in lost]
        assert await self.workers[1].record(late) == set()
        self._forget(lost)

    async def let_time_pass(self) -> None:
        await self.engine.execute(LATER)
        if self.chance.random() < 0.5:
            await self.engine.tidying.run()

    async def resend(self) -> None:
        known = await self.engine.log()
        if known:
            try:
                await self.engine.resend(self.chance.choice(known).id)
            except DomainError:
                return

    async def switch_pause(self) -> None:
        await self._change(lambda config: {"paused": not config.paused})

    async def switch_order(self) -> None:
        await self._change(lambda config: {"ordered": not config.ordered})

    async def choose(self) -> None:
        chosen = self.chance.choice([EVERY_EVENT, (EventName.AVAILABLE,), (EventName.UNAVAILABLE,)])
        await self._change(lambda _: {"events": chosen})

    async def remove(self) -> None:
        if len(self.endpoints) > 1:
            removed = self.endpoints.pop(self.chance.randrange(len(self.endpoints)))
            await self.engine.subscribing.remove(removed.id, COMMAND)

    async def _change(self, changes: object) -> None:
        at = self.chance.randrange(len(self.endpoints))
        wanted = changes(self.endpoints[at].config)  # type: ignore[operator]
        self.endpoints[at] = await self.engine.change(self.endpoints[at], **wanted)

    async def end(self) -> None:
        """Nobody is paused any more, and the workers go on until nothing is left."""
        for endpoint in self.endpoints:
            await self.engine.change(endpoint, paused=False)
        for _ in range(1000):
            await self.answer(everything=True)
            await self.let_time_pass()
            await self.claim()
            if not self.held and not await self.engine.value("select count(*) from pending_delivery"):
                return
            if self.chance.random() < 0.1:
                await self.engine.tidying.run()
        raise AssertionError(await self.engine.rows("select * from pending_delivery"))


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_every_delivery_ends_and_the_books_agree(
    database: Database, seed: int
) -> None:
    async with an_engine(database, schedule=Schedule(0.001, ATTEMPTS)) as engine:
        project_id = await new_units(database, *CODES)
        world = World(engine, project_id, random.Random(seed))
        for number in range(3):
            made_endpoint = await engine.subscribe(ordered=number == 1, max_in_flight=1 + 3 * number)
            world.endpoints.append(made_endpoint.endpoint)
        everyone = list(world.endpoints)
        for _ in range(STEPS):
            await world.step()
        await world.end()
        await check(engine, everyone)


async def check(engine: Engine, endpoints: list[Endpoint]) -> None:
    assert await engine.value("select count(*) from in_flight") == 0
    for endpoint in endpoints:
        tally = (await engine.deliveries.reconcile(endpoint.id, None)).counts
        assert (tally.pending, tally.missing, tally.forgotten) == (0, 0, 0)
        assert tally.events == tally.delivered + tally.failed + tally.cancelled
    series: dict[UUID, list[str]] = defaultdict(list)
    for delivery_id, number, trigger, *_ in await engine.rows(SERIES):
        series[delivery_id].append(trigger)
        assert number == len(series[delivery_id])
    for triggers in series.values():
        assert longest_series(triggers) <= ATTEMPTS
    counted = await engine.rows("select id, attempts from ended_delivery where attempts > 0")
    assert dict(counted) == {delivery_id: len(triggers) for delivery_id, triggers in series.items()}


def longest_series(triggers: list[str]) -> int:
    longest = length = 0
    for trigger in triggers:
        length = length + 1 if trigger == "retry" else 1
        longest = max(longest, length)
    return longest
