"""The one write path: every unit write is a command, and concurrent commands share a transaction.

The first command runs at once; what arrives meanwhile becomes the next batch. There is no timer:
an idle system answers one command as fast as it can, a busy one packs its batches by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol
from uuid import UUID

from holdfast.domain.event import UnitEvent
from holdfast.domain.project import Project
from holdfast.domain.refusals import DatabaseAway, InvalidInput, Refusal
from holdfast.domain.unit import Decision, Standing, Unit, lapse
from holdfast.observability.metrics import note_batch
from holdfast.storage import units
from holdfast.storage.database import CommitUnknown, Connection, Database, RefusedByDatabase, TryAgain
from holdfast.storage.unit_rows import is_state_alone
from holdfast.storage.units import CreatedMeanwhile, UnitKey

BATCHES_IN_FLIGHT = 2
LARGEST_BATCH = 256
ROUNDS_AT_MOST = 5


class Command(Protocol):
    """One write to one unit."""

    @property
    def key(self) -> UnitKey: ...

    def decide(self, standing: Standing, now: datetime) -> Decision:
        """Pure; raises a Refusal."""
        ...


class Written(NamedTuple):
    decision: Decision
    project: Project
    changed: bool


Outcome = Written | Refusal


class WritePath:
    """Collects the commands of one process into batches."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[tuple[Command, asyncio.Future[Outcome]]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, command: Command) -> Written:
        """Once submitted, a command runs to its end, whether its caller waits for it or not."""
        outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((command, outcome))
        if len(self._running) < BATCHES_IN_FLIGHT:
            task = asyncio.create_task(self._run_batches())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        return _written_or_raise(await outcome)

    async def close(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    async def _run_batches(self) -> None:
        while self._waiting:
            size = min(len(self._waiting), LARGEST_BATCH)
            batch = [self._waiting.popleft() for _ in range(size)]
            try:
                outcomes = await write(self._database, [command for command, _ in batch])
            except Exception as failure:  # noqa: BLE001 - its callers wait for it
                for _, future in batch:
                    if not future.done():
                        future.set_exception(failure)
                continue
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                # Done already means that its caller has given up waiting.
                if not future.done():
                    future.set_result(outcome)


async def write(database: Database, commands: Sequence[Command], *, store: bool = True) -> list[Outcome]:
    """Run the commands in one transaction; each gets its own outcome.

    With ``store`` off everything is decided and nothing is written.
    """
    try:
        return await _write_together(database, commands, store)
    except DatabaseAway as away:
        return [away] * len(commands)
    except RefusedByDatabase as refused:
        if len(commands) == 1:
            return [InvalidInput.at("", str(refused))]
    # One bad row never fails its neighbours.
    return [outcome for command in commands for outcome in await write(database, [command], store=store)]


async def _write_together(database: Database, commands: Sequence[Command], store: bool) -> list[Outcome]:
    for _ in range(ROUNDS_AT_MOST):
        batch = _Batch(commands)
        try:
            async with database.writing() as connection:
                await batch.decide(connection, locked=store)
                if store:
                    await batch.store(connection)
            note_batch(len(commands))
            return batch.outcomes
        except (CreatedMeanwhile, TryAgain):
            continue
        except CommitUnknown:
            if await batch.is_stored(database):
                return batch.outcomes
            raise
    raise DatabaseAway


class _Batch:
    """Decides the commands one after the other, each on what the ones before it left."""

    def __init__(self, commands: Sequence[Command]) -> None:
        self._commands = commands
        self.outcomes: list[Outcome] = []
        self._standings: dict[UnitKey, Standing] = {}
        self._created: dict[UUID, Unit] = {}
        self._changed: dict[UUID, tuple[Unit, Unit]] = {}
        """Each as it was found and as it is to be stored."""
        self._events: list[UnitEvent] = []

    async def decide(self, connection: Connection, *, locked: bool) -> None:
        keys = sorted({command.key for command in self._commands})
        now, standings = await units.stand(connection, keys, locked=locked)
        self._standings = dict(zip(keys, standings, strict=True))
        for key, standing in zip(keys, standings, strict=True):
            if standing.unit is not None:
                self._take(key, standing, lapse(standing.unit, now))
        for command in self._commands:
            self.outcomes.append(self._outcome(command, now))

    async def store(self, connection: Connection) -> None:
        if self._created:
            self._give_refs(await units.insert(connection, list(self._created.values())))
        whole = [after for before, after in self._changed.values() if not is_state_alone(before, after)]
        state = [after for before, after in self._changed.values() if is_state_alone(before, after)]
        if whole:
            await units.update(connection, whole)
        if state or self._events:
            await units.update_state(connection, state, self._events)

    async def is_stored(self, database: Database) -> bool:
        """A batch that wrote nothing is as good as stored."""
        written = [*self._created.values(), *(after for _, after in self._changed.values())]
        async with database.reading() as connection:
            return await units.are_stored(connection, written)

    def _outcome(self, command: Command, now: datetime) -> Outcome:
        standing = self._standings[command.key]
        try:
            decision = command.decide(standing, now)
        except Refusal as refusal:
            return refusal
        changed = self._take(command.key, standing, decision)
        return Written(decision, standing.project, changed)

    def _take(self, key: UnitKey, standing: Standing, decision: Decision) -> bool:
        unit = decision.unit
        if unit is standing.unit:
            return False
        self._standings[key] = standing._replace(unit=unit)
        if standing.unit is None or unit.id in self._created:
            self._created[unit.id] = unit
        else:
            found, _ = self._changed.get(unit.id, (standing.unit, None))
            self._changed[unit.id] = (found, unit)
        if decision.event is not None:
            self._events.append(decision.event)
        return True

    def _give_refs(self, refs: dict[UUID, str]) -> None:
        """A created unit learns its ``ref`` when it is inserted."""
        for at, outcome in enumerate(self.outcomes):
            if isinstance(outcome, Written) and (ref := refs.get(outcome.decision.unit.id)):
                unit = outcome.decision.unit._replace(ref=ref)
                self.outcomes[at] = outcome._replace(decision=outcome.decision._replace(unit=unit))


def _written_or_raise(outcome: Outcome) -> Written:
    if isinstance(outcome, Refusal):
        raise outcome
    return outcome
