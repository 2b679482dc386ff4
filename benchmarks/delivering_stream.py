"""Status changes through the API, at a rate or one at a time, and how long each took to its receivers."""

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import uvloop

from benchmarks import database, workload
from benchmarks.contestants import Contestant
from benchmarks.delivering_receiver import Receiver
from benchmarks.wrk import InvalidRun

CONNECTIONS = 32
PRICE = "400000.50"
KEPT_UP = 0.95
DELIVERED_WITHIN_SECONDS = 60
Changes = Iterator[tuple[str, str]]

NOW = "select date_trunc('milliseconds', clock_timestamp())"
TOLD = "select count(*) from event where created_at >= $1"
# The time of an event is taken before its commit, so that a lag by it is never shorter than it was.
ENDED = """
    select ended_delivery.id::text, extract(epoch from ended_delivery.created_at)::float8
    from ended_delivery join endpoint on endpoint.id = endpoint_id
    where ended_delivery.created_at >= $1 and status = 'delivered' and url = any($2)
"""


def status_changes(units: int) -> Changes:
    """Endless targets and bodies over units that are all on sale: off sale one after the other, then back."""
    for status in itertools.cycle(("unavailable", "available")):
        for number in range(1, units + 1):
            yield workload.unit_path(workload.SLUG, number), workload.body(number, PRICE, status)


def now(url: str) -> datetime:
    moment: datetime = database.value(url, NOW)
    return moment


def stream(contestant: Contestant, changes: Changes, per_second: float, seconds: float) -> int:
    """So many a second, whatever the answers take; void if the server cannot keep up. Gives their number."""
    count = int(per_second * seconds)
    reached = count / uvloop.run(_stream(contestant, itertools.islice(changes, count), per_second))
    if reached < KEPT_UP * per_second:
        raise InvalidRun(f"{per_second:g} status changes a second were wanted, {reached:.0f} were made.")
    return count


async def _stream(contestant: Contestant, changes: Changes, per_second: float) -> float:
    """The seconds until the last answer."""
    clients: asyncio.Queue[_Client] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        clients.put_nowait(await _Client.connect(contestant))
    loop = asyncio.get_running_loop()
    started = loop.time()
    async with asyncio.TaskGroup() as group:
        for number, (target, body) in enumerate(changes):
            await asyncio.sleep(max(0.0, started + number / per_second - loop.time()))
            group.create_task(_change(clients, target, body))
    taken = loop.time() - started
    while not clients.empty():
        clients.get_nowait().close()
    return taken


async def _change(clients: "asyncio.Queue[_Client]", target: str, body: str) -> None:
    client = await clients.get()
    await client.put(target, body.encode())
    clients.put_nowait(client)


class _Client:
    """One kept-alive connection with one request at a time."""

    def __init__(
        self, contestant: Contestant, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._name = contestant.name
        self._head = (
            f" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {contestant.ground.key}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        )
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, contestant: Contestant) -> "_Client":
        return cls(contestant, *await asyncio.open_connection("127.0.0.1", contestant.port))

    async def put(self, target: str, body: bytes) -> None:
        self._writer.write(f"PUT {target}{self._head}{len(body)}\r\n\r\n".encode() + body)
        head = await self._reader.readuntil(b"\r\n\r\n")
        at = head.lower().index(b"\r\ncontent-length:") + 17
        answer = await self._reader.readexactly(int(head[at : head.index(b"\r", at)]))
        if not head.startswith(b"HTTP/1.1 200 "):
            raise InvalidRun(f"{self._name}: PUT {target} was answered {head[9:12]!r}: {answer[:300]!r}")

    def close(self) -> None:
        self._writer.close()


def lags_ms(
    contestant: Contestant, receiver: Receiver, since: datetime, changes: int, endpoint_urls: Sequence[str]
) -> list[float]:
    """From each event since then to its arrival at each of these endpoints; void if one is missing."""
    url, wanted = contestant.ground.database_url, changes * len(endpoint_urls)
    told = database.value(url, TOLD, since)
    if told != changes:
        raise InvalidRun(f"{changes} statuses were changed, but {told} events are stored.")
    ended = _wait_for(lambda: _ended(url, since, endpoint_urls), wanted)
    arrived: dict[str, float] = {}
    for arrival in receiver.arrivals():
        arrived.setdefault(arrival.delivery_id, arrival.at)
    if missing := [delivery_id for delivery_id in ended if delivery_id not in arrived]:
        raise InvalidRun(f"{len(missing)} deliveries are recorded as delivered, but did not come.")
    return [1000 * (arrived[delivery_id] - told_at) for delivery_id, told_at in ended.items()]


def _ended(url: str, since: datetime, endpoint_urls: Sequence[str]) -> dict[str, float]:
    rows = database.run(url, lambda connection: connection.fetch(ENDED, since, list(endpoint_urls)))
    return {row[0]: row[1] for row in rows}


def _wait_for(look: Callable[[], dict[str, float]], wanted: int) -> dict[str, float]:
    deadline = time.monotonic() + DELIVERED_WITHIN_SECONDS
    while len(found := look()) < wanted:
        if time.monotonic() > deadline:
            raise InvalidRun(f"{len(found)} of {wanted} deliveries came within {DELIVERED_WITHIN_SECONDS} s.")
        time.sleep(0.2)
    if len(found) > wanted:
        raise InvalidRun(f"{wanted} deliveries were wanted, {len(found)} came.")
    return found
