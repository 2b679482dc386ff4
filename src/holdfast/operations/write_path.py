"""The one write path: every unit write is a command, and concurrent commands are stored together.

The first command runs at once; what arrives meanwhile becomes the next batch. There is no timer: an
idle system answers one command as fast as it can, a busy one packs its batches by itself.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

from holdfast.domain.errors import DatabaseAway, InvalidInput, Refusal
from holdfast.observability.metrics import note_batch
from holdfast.operations.batch import Batch, Outcome, Written
from holdfast.operations.command import Command
from holdfast.storage.database import CommitUnknown, Database, RefusedByDatabase, TryAgain

BATCHES_IN_FLIGHT = 2
LARGEST_BATCH = 256
TURNS_UNTIL_ASKED_AGAIN = 3
"""Of the event loop: one in which callers are answered, one in which what they send next is read, and
one in which that is submitted."""
ROUNDS_AT_MOST = 10

__all__ = ["Command", "Outcome", "WritePath", "Written", "write"]


_log = logging.getLogger(__name__)


class StillOvertaken(DatabaseAway):
    """The database refused for the sake of another, again and again."""

    def __init__(self, why: str) -> None:
        super().__init__("Other changes came first, again and again; nothing was stored. Try again shortly.")
        self.why = why


class WritePath:
    """Collects the commands of one process into batches."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[tuple[Command, asyncio.Future[Outcome]]] = deque()
        self._running: set[asyncio.Task[None]] = set()

    async def submit(self, command: Command) -> Written:
        """Once submitted, a command runs to its end, whether its caller waits for it or not."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Outcome] = loop.create_future()
        self._waiting.append((command, future))
        if not self._running or (len(self._running) < BATCHES_IN_FLIGHT and self._is_a_full_batch_waiting()):
            self._running.add(loop.create_task(self._run_batches()))
        outcome = await future
        if isinstance(outcome, Refusal):
            try:
                raise outcome
            finally:
                # It holds this frame, which must not hold it: nothing is left for the garbage collector.
                del outcome, future
        return outcome

    async def close(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    def _is_a_full_batch_waiting(self) -> bool:
        return len(self._waiting) >= LARGEST_BATCH

    async def _run_batches(self) -> None:
        """One batch at a time: every batch has a price of its own, so one large one beats two small ones.

        For the same reason those who were just answered may ask again before the next one sets out. A
        second runner helps as long as full batches wait.
        """
        try:
            while self._waiting and (len(self._running) == 1 or self._is_a_full_batch_waiting()):
                size = min(len(self._waiting), LARGEST_BATCH)
                await self._run_batch([self._waiting.popleft() for _ in range(size)])
                for _ in range(TURNS_UNTIL_ASKED_AGAIN):
                    await asyncio.sleep(0)
        finally:
            # Here and not when the task is found to be done, so that no command falls in between.
            self._running.remove(asyncio.current_task())  # type: ignore[arg-type]

    async def _run_batch(self, batch: Sequence[tuple[Command, asyncio.Future[Outcome]]]) -> None:
        try:
            outcomes = await write(self._database, [command for command, _ in batch])
        except Exception as failure:  # noqa: BLE001 - its callers wait for it
            for _, future in batch:
                if not future.done():
                    future.set_exception(failure)
        except BaseException:
            for _, future in batch:
                future.cancel()
            raise
        else:
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                # Done already means that its caller has given up waiting.
                if not future.done():
                    future.set_result(outcome)


async def write(database: Database, commands: Sequence[Command], *, store: bool = True) -> list[Outcome]:
    """Run the commands together; each gets its own outcome.

    First without a lock: find the units, decide, and store each one that still is as it was found.
    What somebody else has changed in between is decided again under a lock. With ``store`` off
    everything is decided and nothing is written.
    """
    try:
        outcomes = await _write_as_found(database, commands, store)
    except DatabaseAway as away:
        return [away] * len(commands)
    overtaken = [at for at, outcome in enumerate(outcomes) if outcome is None]
    locked = await _write_locked(database, [commands[at] for at in overtaken]) if overtaken else []
    for at, outcome in zip(overtaken, locked, strict=True):
        outcomes[at] = outcome
    note_batch(len(commands))
    return [outcome for outcome in outcomes if outcome is not None]


async def _write_as_found(
    database: Database, commands: Sequence[Command], store: bool
) -> list[Outcome | None]:
    """None for a command whose unit was overtaken by another writer."""
    batch = Batch(commands, is_final=not store)
    try:
        async with database.writing_at_once() as connection:
            await batch.decide(connection, database.known_projects, locked=False)
            if store:
                await batch.store(connection)
        _hint(database, batch)
    except (TryAgain, RefusedByDatabase) as refused:
        # Where something is stored it is decided again, under locks, and told if that is refused too.
        if not store:
            _log.warning("a dry run was refused by the database", extra={"fields": {"why": _why(refused)}})
            raise DatabaseAway from None
    except DatabaseAway as away:
        with suppress(DatabaseAway):
            await batch.look_for_stored(database)
        return batch.outcomes_or(away)
    return batch.outcomes_or(None) if store else list(batch.outcomes)


async def _write_locked(database: Database, commands: Sequence[Command]) -> list[Outcome]:
    try:
        return await _write_in_transaction(database, commands)
    except StillOvertaken as overtaken:
        if len(commands) == 1:
            _warn("a change was overtaken again and again", commands[0], overtaken.why)
            return [overtaken]
    except DatabaseAway as away:
        return [away] * len(commands)
    except RefusedByDatabase as refused:
        if len(commands) == 1:
            _warn("a change that the domain had let through was refused", commands[0], refused.constraint)
            return [InvalidInput.at("", str(refused))]
    # One bad row never fails its neighbours.
    return [outcome for command in commands for outcome in await _write_locked(database, [command])]


async def _write_in_transaction(database: Database, commands: Sequence[Command]) -> list[Outcome]:
    why = ""
    for _ in range(ROUNDS_AT_MOST):
        batch = Batch(commands, is_final=True)
        try:
            async with database.writing() as connection:
                await batch.decide(connection, database.known_projects, locked=True)
                await batch.store(connection)
                if not batch.is_stored():
                    raise TryAgain("another transaction created a unit first")
            _hint(database, batch)
            return batch.settled()
        except TryAgain as again:
            why = again.why
        except CommitUnknown as unknown:
            batch.forget_stored()
            await batch.look_for_stored(database)
            return [outcome or unknown for outcome in batch.outcomes_or(unknown)]
    raise StillOvertaken(why)


def _hint(database: Database, batch: Batch) -> None:
    if batch.deliveries:
        database.hint_at_deliveries()


def _why(refused: TryAgain | RefusedByDatabase) -> str:
    return refused.why if isinstance(refused, TryAgain) else refused.constraint


def _warn(message: str, command: Command, why: str) -> None:
    """``why`` is for operators alone: a constraint that stays in the way is a fault of ours."""
    project_id, code = command.key
    fields = {"why": why, "projectId": project_id, "unitCode": code, "requestId": command.author.request_id}
    _log.warning(message, extra={"fields": fields})
