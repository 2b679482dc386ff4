"""The runs of the part ``lapse``: each is prepared, watched from a connection of its own, and proved."""

import asyncio
import json
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import asyncpg

from benchmarks import database, holding, lapsing, workload
from benchmarks.account import Account
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant
from benchmarks.lapsing import Hold, Look
from benchmarks.one_connection import OneConnection
from benchmarks.parts.selling import units_to_change
from benchmarks.turn import WARM_UP_SECONDS, cpu_of, free_units, settled
from benchmarks.wrk import CONNECTIONS, InvalidRun, put_load_meanwhile

# Enough for what has to be known before the first end.
NOTICE_SECONDS = 5.0
JUST_BEFORE_SECONDS = 0.2
LEAD_SECONDS, LEAD_PER_UNIT_SECONDS = 15.0, 0.0003
LONGEST_PUT_SECONDS = 300
# Longer than the server sleeps when nothing is held, so that a hold may come at any point of its sleep.
LONGEST_PAUSE_SECONDS = 0.5
TOLD_ON_TIME = """
    select count(*) from event join booking on booking.unit_id = event.unit_id
        and booking.ended_at = event.created_at and booking.hold_expires_at = event.created_at
    where event.type = 'unit.released' and booking.status = 'lapsed'
"""


@dataclass(frozen=True, slots=True)
class Lags:
    """Of one release after the other."""

    seconds: list[float]
    foreign_percent: float


@dataclass(frozen=True, slots=True)
class AtOnce:
    seconds: float
    """From the end that all share to the last release."""
    foreign_percent: float
    server_cpu_per_1000: float | None = None
    postgres_cpu_per_1000: float | None = None
    put_before: float | None = None
    put_meanwhile: float | None = None


def steadily(arena: Arena, contestant: Contestant, units: range, spread_seconds: float) -> Lags:
    first_end = _hold_all(arena, contestant, units, spread_seconds, NOTICE_SECONDS)

    async def act(connection: asyncpg.Connection) -> list[float]:
        return await lapsing.each_lag(connection, holds)

    with _proved_releases(contestant, len(units)):
        holds = database.run(contestant.ground.database_url, lapsing.held)
        if len(holds) != len(units):
            raise InvalidRun(f"{len(holds)} of {len(units)} units were held when the watch began.")
        _sleep_until(contestant, first_end - timedelta(seconds=JUST_BEFORE_SECONDS))
        account, started = Account(arena, cpu_of(contestant)), time.perf_counter()
        lags = database.run(contestant.ground.database_url, act)
        return Lags(lags, account.close(time.perf_counter() - started).foreign_percent)


def at_once(arena: Arena, contestant: Contestant, units: range) -> AtOnce:
    end = _hold_all(arena, contestant, units, 0, NOTICE_SECONDS)

    with _proved_releases(contestant, len(units)):
        _sleep_until(contestant, end - timedelta(seconds=JUST_BEFORE_SECONDS))
        account = Account(arena, cpu_of(contestant))
        last = database.run(
            contestant.ground.database_url, lambda connection: lapsing.until_all_released(connection, end)
        )
        seconds = (last.at - end).total_seconds()
        spent = account.close(seconds + JUST_BEFORE_SECONDS)
    thousands = len(units) / 1000
    return AtOnce(
        seconds,
        spent.foreign_percent,
        server_cpu_per_1000=spent.server_cpu_seconds / thousands,
        postgres_cpu_per_1000=spent.postgres_cpu_seconds / thousands,
    )


def at_once_under_puts(arena: Arena, contestant: Contestant, units: range, seconds_before: int) -> AtOnce:
    notice = NOTICE_SECONDS + WARM_UP_SECONDS + seconds_before
    end = _hold_all(arena, contestant, units, 0, notice)

    async def act(connection: asyncpg.Connection) -> tuple[Look, Look, Look]:
        await asyncio.sleep(WARM_UP_SECONDS)
        first = await lapsing.look(connection)
        await lapsing.sleep_until(connection, end)
        at_end = await lapsing.look(connection)
        return first, at_end, await lapsing.until_all_released(connection, end)

    with _proved_releases(contestant, len(units)) as put:
        _sleep_until(contestant, end - timedelta(seconds=WARM_UP_SECONDS + seconds_before))
        account, started = Account(arena, cpu_of(contestant)), time.perf_counter()
        with put_load_meanwhile(contestant, units_to_change(arena), LONGEST_PUT_SECONDS) as answered:
            first, at_end, last = database.run(contestant.ground.database_url, act)
        spent = account.close(time.perf_counter() - started)
        put.append(answered[0].requests)
    return AtOnce(
        (last.at - end).total_seconds(),
        spent.foreign_percent,
        put_before=_entries_per_second(first, at_end),
        put_meanwhile=_entries_per_second(at_end, last, less=len(units)),
    )


def single_holds(arena: Arena, contestant: Contestant, units: range) -> Lags:
    """One after the other, each after a pause of another length."""
    free_units(contestant.ground)
    account, started = Account(arena, cpu_of(contestant)), time.perf_counter()
    with OneConnection(contestant, as_buyer=True) as client:

        async def act(connection: asyncpg.Connection) -> list[float]:
            chance = random.Random(1)
            lags: list[float] = []
            for number in units:
                arena.progress(f"lapse: {len(lags)} of {len(units)} single holds")
                lags.append(await lapsing.lag_of_one(connection, _hold(client, number)))
                await asyncio.sleep(chance.uniform(0, LONGEST_PAUSE_SECONDS))
            return lags

        lags = database.run(contestant.ground.database_url, act)
    return Lags(lags, account.close(time.perf_counter() - started).foreign_percent)


def _hold(client: OneConnection, number: int) -> Hold:
    _, answer = client.request("POST", f"{workload.offer_path(number)}/hold")
    return Hold(workload.code(number), datetime.fromisoformat(json.loads(answer)["holdExpiresAt"]))


def _hold_all(
    arena: Arena, contestant: Contestant, units: range, spread_seconds: float, notice_seconds: float
) -> datetime:
    """The first end, which is at least the notice away when all are held and told of."""
    url = contestant.ground.database_url
    lead = LEAD_SECONDS + notice_seconds + len(units) * LEAD_PER_UNIT_SECONDS
    while True:
        free_units(contestant.ground)
        first_end = _now(contestant) + timedelta(seconds=lead)
        holding.hold_all(url, units, first_end, spread_seconds, arena.progress)
        holding.wait_until_numbered(url)
        left = (first_end - _now(contestant)).total_seconds()
        if left >= notice_seconds:
            arena.progress(f"lapse: {len(units):,} units are held; the first end is {left:.0f} s away")
            return first_end
        lead *= 2


def _now(contestant: Contestant) -> datetime:
    """In whole milliseconds, as all times of units are."""
    moment: datetime = database.value(
        contestant.ground.database_url, "select date_trunc('milliseconds', clock_timestamp())"
    )
    return moment


def _sleep_until(contestant: Contestant, moment: datetime) -> None:
    time.sleep(max(0.0, (moment - _now(contestant)).total_seconds()))


@contextmanager
def _proved_releases(contestant: Contestant, count: int) -> Iterator[list[int]]:
    """Void unless each release told its event at the very end of its hold; PUTs are named in the list."""
    url = contestant.ground.database_url
    versions, _ = settled(contestant.ground)
    told = database.value(url, TOLD_ON_TIME)
    put: list[int] = []
    yield put
    changes = settled(contestant.ground)[0] - versions - count
    told = database.value(url, TOLD_ON_TIME) - told
    if told != count:
        raise InvalidRun(f"{count} holds ended, but {told} events tell of it with the right time.")
    if not sum(put) <= changes <= sum(put) + CONNECTIONS * len(put):
        raise InvalidRun(f"{sum(put)} PUTs were answered, but {changes} changes are stored.")


def _entries_per_second(since: Look, until: Look, less: int = 0) -> float:
    return (until.entries - since.entries - less) / (until.at - since.at).total_seconds()
