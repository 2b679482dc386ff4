"""Faults of the network between Holdfast and its databases, and between the databases."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from tests.chaos.faults import Injection, Kind, Run
from tests.chaos.network import FOREGROUND, Link, When
from tests.chaos.scene import Scene
from tests.support.delivery_engine import eventually

LANE = "network"
_EFFECT_SECONDS = 3.0
"""How long to wait until somebody uses a connection that was lost."""
_UNACKNOWLEDGED_SECONDS = 0.2
"""On loopback, what arrives is acknowledged long before."""


def _cut_at_commit(when: When, effect: str) -> Run:
    async def run(scene: Scene, injection: Injection) -> None:
        links = list(scene.network.app.values())
        before = _cuts(links, when)
        with suppress(TimeoutError):
            async with asyncio.timeout(injection.seconds):
                while True:
                    await _cut_one(links, when, injection)
        if cut := _cuts(links, when) - before:
            injection.saw(f"{cut} connections cut {effect}")

    return run


async def _cut_one(links: list[Link], when: When, injection: Injection) -> None:
    """The next commit, which is mostly, but not always, one that somebody waits for."""
    application = FOREGROUND if injection.chance.random() < 0.7 else None
    pause, before = injection.chance.uniform(0.1, 0.5), _cuts(links, when)
    try:
        for link in links:
            link.cut_at(when, application=application)
        await eventually(lambda: _cuts(links, when) > before)
    finally:
        for link in links:
            link.cut_at(None)
    await asyncio.sleep(pause)


def _cuts(links: Iterable[Link], when: When) -> int:
    return sum(link.cuts[when] for link in links)


async def _reset_all(scene: Scene, injection: Injection) -> None:
    if cut := sum(link.cut() for link in scene.network.app.values()):
        injection.saw(f"{cut} connections reset")


async def _hang_and_go_on(scene: Scene, injection: Injection) -> None:
    await _disturb(list(scene.network.app.values()), injection, Link.hang)


async def _hang_replication(scene: Scene, injection: Injection) -> None:
    await _disturb(list(scene.network.replication.values()), injection, Link.hang)


async def _delay(scene: Scene, injection: Injection) -> None:
    seconds = injection.chance.uniform(0.05, 0.15)

    def delay(link: Link) -> None:
        link.line.delay = seconds

    await _disturb(list(scene.network.app.values()), injection, delay)


async def _trickle(scene: Scene, injection: Injection) -> None:
    bytes_per_second = injection.chance.randint(20_000, 80_000)

    def slow_down(link: Link) -> None:
        link.line.bytes_per_second = bytes_per_second

    await _disturb(list(scene.network.app.values()), injection, slow_down)


async def _disturb(
    links: list[Link],
    injection: Injection,
    disturb: Callable[[Link], object],
    before_it_heals: Callable[[Link], object] = lambda _: None,
) -> None:
    before = _withheld(links)
    try:
        for link in links:
            disturb(link)
        await asyncio.sleep(injection.seconds)
        if withheld := _withheld(links) - before:
            injection.saw(f"{withheld} bytes had to wait")
    finally:
        for link in links:
            before_it_heals(link)
            await link.heal()


def _withheld(links: Iterable[Link]) -> int:
    return sum(link.withheld_bytes for link in links)


async def _black_hole(scene: Scene, injection: Injection) -> None:
    """Nothing passes, nobody is told, and in the end no connection is left."""

    def swallow(link: Link) -> None:
        link.swallows_new = True
        link.hang()

    await _disturb(list(scene.network.app.values()), injection, swallow, Link.cut)


async def _lose_all(scene: Scene, injection: Injection) -> None:
    await _lose(scene, injection, sys.maxsize)


async def _lose_a_few(scene: Scene, injection: Injection) -> None:
    await _lose(scene, injection, injection.chance.randint(2, 4))


async def _lose(scene: Scene, injection: Injection, at_most: int) -> None:
    """Holdfast gives a statement up after 20 s, and until then waits for it in vain."""
    links = list(scene.network.app.values())
    known = _unacknowledged(links)
    for link in links:
        connections = link.current_connections()
        link.lose(injection.chance.sample(connections, min(at_most, len(connections))))
    with suppress(TimeoutError):
        async with asyncio.timeout(_EFFECT_SECONDS):
            seen = set[str]()
            while not seen:
                first = _unacknowledged(links) - known
                await asyncio.sleep(_UNACKNOWLEDGED_SECONDS)
                seen = first & _unacknowledged(links)
            injection.saw(f"{len(seen)} connections sent what nobody acknowledged")


def _unacknowledged(links: Iterable[Link]) -> set[str]:
    """Return the local addresses of connections whose bytes are on their way to one of the links."""
    remotes, found = {f"0100007F:{link.port:04X}" for link in links}, set[str]()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        if remote in remotes and int(queues.split(":")[0], 16):
            found.add(local)
    return found


async def _refuse(scene: Scene, injection: Injection) -> None:
    links = list(scene.network.app.values())
    try:
        for link in links:
            link.refuse()
        cut = sum(link.cut() for link in links)
        await asyncio.sleep(injection.seconds)
        if cut and all([await _is_refused(link) for link in links]):
            injection.saw(f"{cut} connections reset, and new ones refused")
    finally:
        for link in links:
            await link.heal()


async def _is_refused(link: Link) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", link.port)
    except ConnectionRefusedError:
        return True
    writer.transport.abort()
    return False


async def _close_clients(scene: Scene, injection: Injection) -> None:
    if found := sum(link.close_clients() for link in scene.network.app.values()):
        injection.saw(f"{found} connections of clients closed, and their sessions left open")


async def _swallow_new(scene: Scene, injection: Injection) -> None:
    """Of the host that Holdfast tries first, whether or not it takes writes."""
    first, links = scene.network.app["one"], scene.network.app.values()
    before = first.swallowed
    try:
        first.swallows_new = True
        for link in links:
            link.cut()
        await asyncio.sleep(injection.seconds)
        if swallowed := first.swallowed - before:
            injection.saw(f"{swallowed} new connections got no answer")
    finally:
        await first.heal()


async def _cut_replication(scene: Scene, injection: Injection) -> None:
    if cut := sum(link.cut() for link in scene.network.replication.values()):
        injection.saw(f"{cut} connections of the standby reset")


def _kind(name: str, run: Run, seconds: tuple[float, float] = (0.0, 0.0), weight: int = 2) -> Kind:
    return Kind(name, LANE, run, seconds, weight=weight)


KINDS = [
    _kind("connections are cut before COMMIT", _cut_at_commit("before", "before COMMIT"), (2.0, 4.0), 3),
    _kind("connections are cut in COMMIT", _cut_at_commit("in", "in COMMIT"), (2.0, 4.0), 3),
    _kind("connections are cut after COMMIT", _cut_at_commit("after", "after COMMIT"), (2.0, 4.0), 3),
    _kind("all connections are reset", _reset_all),
    _kind("the network hangs, then goes on", _hang_and_go_on, (2.0, 4.0)),
    _kind("the network is a black hole, then resets", _black_hole, (2.0, 3.5)),
    _kind("all connections are lost silently", _lose_all),
    _kind("a few connections are lost silently", _lose_a_few),
    _kind("the network delays every packet", _delay, (2.0, 4.0)),
    _kind("the network trickles", _trickle, (2.0, 4.0)),
    _kind("connections are refused", _refuse, (1.0, 3.0), 3),
    _kind("connections are half open", _close_clients),
    _kind("new connections to the first host get no answer", _swallow_new, (2.0, 4.0), 3),
    _kind("the standby's network hangs, then goes on", _hang_replication, (1.0, 4.0)),
    _kind("the standby's connections are reset", _cut_replication, weight=3),
]
