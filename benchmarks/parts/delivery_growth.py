"""The same backlog with an empty log, and with a long one and very many retries that are due later."""

import asyncio
from collections import defaultdict
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from statistics import median
from time import perf_counter
from typing import Any
from uuid import UUID

from benchmarks import database
from benchmarks.arena import Arena
from benchmarks.delivering import add_endpoints, forget_endpoints, forget_log, tidy
from benchmarks.delivering_backlog import fill
from benchmarks.delivering_drain import COLUMNS, ENDPOINTS, Backlog, Drained, drain, medians, row
from benchmarks.delivering_log import schedule_retries, write_log
from benchmarks.delivering_receiver import Receiver, receiving
from benchmarks.parts.deliveries import UNITS
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.turn import noise_caption, quietest
from benchmarks.wrk import InvalidRun
from holdfast.domain.endpoint import MAX_IN_FLIGHT
from holdfast.storage import delivery_queue
from holdfast.storage.database import DISPATCHER_SETTINGS, Database
from holdfast.webhooks.dispatcher import AT_ONCE

EMPTY, GROWN = "empty_log", "grown_log"
NAMES = {EMPTY: "empty", GROWN: "grown"}
CLAIMS = 40
LEASE = timedelta(seconds=35)
FORGET_BACKLOG = "delete from pending_delivery where tried = 0"
RESUME = "update endpoint set paused = false"


class _Undone(Exception):
    """A claim was timed, and is given up with its transaction."""


def measure(arena: Arena) -> Finding:
    rounds, units, log_rows, retries = (
        (1, 500, 100_000, 20_000) if arena.quick else (5, UNITS, 5_000_000, 500_000)
    )
    drained: dict[str, list[Drained]] = defaultdict(list)
    claim_ms: dict[str, list[float]] = defaultdict(list)
    with receiving(arena.logs, ENDPOINTS) as receiver:
        _make_grounds(arena, receiver, log_rows, retries)
        for number in range(1, rounds + 1):
            for name, taken in _claims(arena, units).items():
                claim_ms[name].append(taken)
                arena.progress(
                    f"delivery_growth: round {number} of {rounds}: {NAMES[name]}: {taken:.1f} ms a claim"
                )
            for name in (EMPTY, GROWN)[:: 1 if number % 2 else -1]:
                arena.progress(f"delivery_growth: round {number} of {rounds}: {NAMES[name]}")

                def take(name: str = name) -> Drained:
                    backlog = _fill(arena, name, units)
                    return drain(arena, receiver, backlog, 1)

                drained[name].append(quietest(arena, take))
                arena.progress(f"delivery_growth: {drained[name][-1].per_second:,.0f}/s")
    caption = noise_caption(run for of_name in drained.values() for run in of_name)
    figures = {NAMES[name]: _medians(drained[name], claim_ms[name]) for name in (EMPTY, GROWN)}
    return _finding(figures, log_rows, retries, caption)


def _make_grounds(arena: Arena, receiver: Receiver, log_rows: int, retries: int) -> None:
    """The endpoints stay for all runs, because the retries are theirs."""
    for name in (EMPTY, GROWN):
        url = arena.ground(name, UNITS).database_url
        forget_endpoints(url)
        forget_log(url)
        add_endpoints(url, receiver.urls(ENDPOINTS))
    write_log(url, log_rows, arena.progress)
    schedule_retries(url, retries, arena.progress)
    tidy(url)


def _fill(arena: Arena, name: str, units: int) -> Backlog:
    """What the last claims left is forgotten; the retries, and the log of the grown one, stay."""
    url = arena.ground(name, UNITS).database_url
    if name == EMPTY:
        forget_log(url)
    database.execute(url, FORGET_BACKLOG, RESUME)
    return Backlog(url, units * ENDPOINTS, fill(url, units))


def _claims(arena: Arena, units: int) -> dict[str, float]:
    """The median time of the product's own claim, in both databases by turns, so that whatever slows the
    machine slows both."""
    urls = {name: _fill(arena, name, units).url for name in (EMPTY, GROWN)}
    return asyncio.run(_claims_ms(urls))


async def _claims_ms(urls: dict[str, str]) -> dict[str, float]:
    taken: dict[str, list[float]] = defaultdict(list)
    async with AsyncExitStack() as stack:
        stores = {}
        for name, url in urls.items():
            opened = Database(url, writers=1, readers=1, settings=DISPATCHER_SETTINGS)
            stores[name] = await stack.enter_async_context(opened)
        for _ in range(CLAIMS):
            for name, store in stores.items():
                taken[name].append(await _claim_ms(store))
    return {name: median(times) for name, times in taken.items()}


async def _claim_ms(store: Database) -> float:
    """Of as many as a worker sends at once, from a full backlog; then given up."""
    async with store.writing_autocommit() as connection:
        await connection.execute("vacuum in_flight")
    with suppress(_Undone):
        async with store.writing() as connection:
            started = perf_counter()
            found = await delivery_queue.claim(connection, UUID(int=0), AT_ONCE, LEASE, MAX_IN_FLIGHT)
            taken_ms = 1000 * (perf_counter() - started)
            if not found.claimed:
                raise InvalidRun("A claim found nothing in a full backlog.")
            raise _Undone
    return taken_ms


def _medians(drained: list[Drained], claim_ms: list[float]) -> dict[str, Any]:
    return medians(drained) | {
        "claim_ms": median(claim_ms),
        "claims": [round(taken, 2) for taken in claim_ms],
    }


def _ratio(grown: list[float], empty: list[float]) -> float:
    """The median over the rounds: the machine changes its pace more from round to round than within one."""
    return median(one / other for one, other in zip(grown, empty, strict=True))


def _finding(figures: dict[str, dict[str, Any]], log_rows: int, retries: int, noise: str) -> Finding:
    empty, grown = figures.values()
    size = f"{log_rows:,} rows of log and {retries:,} scheduled retries"
    targets = [
        Target(f"deliveries with {size} to none", _ratio(grown["runs"], empty["runs"]), 0.9, True),
        Target("the same for the time of a claim", _ratio(grown["claims"], empty["claims"]), 1.1, False),
    ]
    rows = [
        [*row(name, figure), f"{figure['claim_ms']:.1f}"]
        for name, figure in {"empty": empty, size: grown}.items()
    ]
    table = Table([*COLUMNS, f"claim of {AT_ONCE}, ms"], rows, noise)
    title = "Deliveries as log and retries grow"
    return Finding("delivery_growth", title, [table], targets, figures)
