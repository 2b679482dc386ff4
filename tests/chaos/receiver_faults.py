"""Faults of the receivers of webhooks, and of their names."""

from __future__ import annotations

import asyncio

from tests.chaos import receivers as behaviours
from tests.chaos.faults import Injection, Kind, Run, until
from tests.chaos.receivers import NAMES, Behaviour, Receivers
from tests.chaos.scene import Scene

LANE = "receivers"
_EFFECT_SECONDS = 3.0
"""Where no request has come in time, wait for one for so long."""


def _behaving(behaviour: Behaviour | None) -> Run:
    """One to three receivers behave so; None redirects."""

    async def run(scene: Scene, injection: Injection) -> None:
        names = injection.chance.sample(NAMES, injection.chance.randint(1, len(NAMES)))
        with scene.receivers.behaving(behaviour or scene.receivers.redirect(), names) as met:
            await asyncio.sleep(injection.seconds)
            await until(met.total, seconds=_EFFECT_SECONDS)
            if met:
                injection.saw(", ".join(f"{count} requests to {name}" for name, count in met.items()))

    return run


async def _down(scene: Scene, injection: Injection) -> None:
    """A worker that asks for the address of a receiver then connects to it."""
    receivers, asked = scene.receivers, scene.receivers.questions()
    await receivers.close()
    try:
        await asyncio.sleep(injection.seconds)
        await until(lambda: receivers.questions() > asked, seconds=_EFFECT_SECONDS)
        if lookups := receivers.questions() - asked:
            injection.saw(f"{lookups} lookups of receivers whose ports were closed")
    finally:
        await receivers.open()


async def _names_fail(scene: Scene, injection: Injection) -> None:
    names = scene.receivers.name_server
    names.failing.update(scene.receivers.hosts)
    try:
        await _see_questions(scene.receivers, injection, "lookups failed")
    finally:
        names.failing.clear()


async def _name_server_hangs(scene: Scene, injection: Injection) -> None:
    names = scene.receivers.name_server
    names.hanging.update(scene.receivers.hosts)
    try:
        await _see_questions(scene.receivers, injection, "lookups got no answer in time")
    finally:
        names.go_on()


async def _see_questions(receivers: Receivers, injection: Injection, what: str) -> None:
    before = receivers.questions()
    # Connections that are open need no name.
    await receivers.close()
    await receivers.open()
    await asyncio.sleep(injection.seconds)
    await until(lambda: receivers.questions() > before, seconds=_EFFECT_SECONDS)
    if asked := receivers.questions() - before:
        injection.saw(f"{asked} {what}")


def _kind(name: str, run: Run, seconds: tuple[float, float] = (2.0, 4.0), weight: int = 2) -> Kind:
    return Kind(name, LANE, run, seconds, weight=weight)


KINDS = [
    _kind("a receiver hangs", _behaving(behaviours.hang)),
    _kind("a receiver drips its answer", _behaving(behaviours.drip)),
    _kind("a receiver resets connections", _behaving(behaviours.reset)),
    _kind("a receiver answers 500", _behaving(behaviours.answer_with(500)), weight=3),
    _kind("a receiver answers 410", _behaving(behaviours.answer_with(410))),
    _kind("a receiver redirects", _behaving(None)),
    _kind("a receiver sends an endless body", _behaving(behaviours.answer_without_end), weight=3),
    _kind("a receiver closes without an answer", _behaving(behaviours.close)),
    _kind("a receiver does not speak HTTP", _behaving(behaviours.send_garbage)),
    _kind("a receiver answers slowly", _behaving(behaviours.answer_slowly), weight=3),
    _kind("all receivers are down, then back at once", _down, (2.0, 5.0), weight=3),
    _kind("the receivers' names cannot be resolved", _names_fail, weight=3),
    _kind("the name server hangs", _name_server_hangs),
]
