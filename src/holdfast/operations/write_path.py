"""What the write path runs."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from holdfast.domain.audit import CLOCK, AuditEntry, Author
from holdfast.domain.booking import CLAIMING, HOLDING, Booking, LiveHold
from holdfast.domain.decision import Decision, Needs, UnitSnapshot, apply, describe_change, expire
from holdfast.domain.errors import DatabaseUnavailable, DomainError, InvalidInput
from holdfast.domain.project import Project
from holdfast.domain.status import LOCKED, MID_BOOKING
from holdfast.domain.unit import Unit, is_expired
from holdfast.observability.metrics import count_batch
from holdfast.storage import bookings, units
from holdfast.storage.database import (
    CommitUnknown,
    Connection,
    ConstraintViolated,
    Database,
    ProjectCache,
    TransactionConflict,
)
from holdfast.storage.units import Change, Counted, Refs, SideEffects, UnitKey, load_for_update

__all__ = ["Command", "Outcome", "WritePath", "Written", "write"]


NOTHING = Needs()


class Command(Protocol):
    """One write to one unit."""

    @property
    def key(self) -> UnitKey: ...

    @property
    def author(self) -> Author: ...

    @property
    def needs(self) -> Needs:
        """What it must know beside the unit."""
        ...

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        """Pure; raises a DomainError."""
        ...


# What some commands must know beside their unit: its bookings, and what their buyer holds elsewhere.

Snapshots = dict[UnitKey, UnitSnapshot]
BookingsWanted = list[tuple[UnitKey, Needs]]


def asking(commands: Sequence[Command]) -> BookingsWanted:
    """What commands want to know beside their units, for those that do."""
    return [(command.key, wanted) for command in commands if (wanted := command.needs) is not NOTHING]


def counted(asked: BookingsWanted) -> Counted:
    """The holders whose live holds count."""
    addresses = {wanted.holder.address_id for _, wanted in asked}
    visitors = {wanted.holder.visitor_id for _, wanted in asked}
    return Counted(tuple(filter(None, addresses)), tuple(filter(None, visitors)))


async def load_related_bookings(
    connection: Connection,
    snapshots: Snapshots,
    asked: BookingsWanted,
    lapsed: Sequence[UnitKey],
    now: datetime,
    *,
    several: bool,
) -> set[UnitKey]:
    """Completes the snapshots; gives the keys of units that have changed since they were read.

    ``several``: some of the units have more than one command.
    """
    if not asked and not lapsed:
        return set()
    overtaken = await _find_bookings(connection, snapshots, asked, lapsed)
    overtaken |= await _find_keyed(connection, snapshots, asked)
    free = [(key, wanted) for key, wanted in asked if several or _is_free(snapshots[key]) or key in lapsed]
    await _find_lately_lapsed(connection, snapshots, free, now)
    return overtaken


def note_hold(snapshot: UnitSnapshot, booking: Booking) -> None:
    """For the commands that follow in the same batch."""
    if not snapshot.live_holds or booking.status not in HOLDING or booking.hold_expires_at is None:
        return
    for holder, slot in zip(booking.holder, booking.slots, strict=True):
        if holder is not None and slot is not None and holder in snapshot.live_holds:
            holds = snapshot.live_holds[holder]
            assert isinstance(holds, list)
            holds.append(LiveHold(slot, booking.hold_expires_at))


def _is_free(snapshot: UnitSnapshot) -> bool:
    """Only then is it of interest who asks for it; those who come too late cost no look-up.

    A unit that is not free may become so by another command of the batch, before theirs.
    """
    return snapshot.unit is not None and snapshot.unit.status not in LOCKED


async def _find_bookings(
    connection: Connection, snapshots: Snapshots, asked: BookingsWanted, lapsed: Sequence[UnitKey]
) -> set[UnitKey]:
    wanting = {key for key, wanted in asked if wanted.claim}.union(lapsed)
    claimed = {
        unit.id: key for key in wanting if (unit := snapshots[key].unit) is not None and unit.status in LOCKED
    }
    numbered = {wanted.booking_number: key for key, wanted in asked if wanted.booking_number is not None}
    if not claimed and not numbered:
        return set()
    unknown = set(claimed.values())
    overtaken = set()
    for turn, booking in await bookings.concerning(connection, list(claimed), list(numbered)):
        key = claimed.get(booking.unit_id) or numbered[booking.number]
        if snapshots[key].turn != turn:
            overtaken.add(key)
        if booking.status in CLAIMING:
            unknown.discard(key)
        snapshots[key] = _with_booking(snapshots[key], booking)
    return overtaken | unknown


async def _find_keyed(connection: Connection, snapshots: Snapshots, asked: BookingsWanted) -> set[UnitKey]:
    """Bookings that the same requests have made before."""
    idempotency_ids = [wanted.idempotency_id for _, wanted in asked if wanted.idempotency_id]
    keys = {unit.id: key for key, wanted in asked if wanted.idempotency_id and (unit := snapshots[key].unit)}
    if not keys:
        return set()
    overtaken = set()
    for turn, booking in await bookings.keyed(connection, list(keys), idempotency_ids):
        key = keys[booking.unit_id]
        if snapshots[key].turn != turn:
            overtaken.add(key)
        snapshots[key] = _with_booking(snapshots[key], booking)
    return overtaken


async def _find_lately_lapsed(
    connection: Connection, snapshots: Snapshots, asked: BookingsWanted, now: datetime
) -> None:
    recalling = [(key, wanted) for key, wanted in asked if wanted.visitor_id is not None or wanted.token_hash]
    keys = {unit.id: key for key, _ in recalling if (unit := snapshots[key].unit)}
    if not keys:
        return
    since = now - timedelta(seconds=max(wanted.expired_within_seconds for _, wanted in recalling))
    visitors = [wanted.visitor_id for _, wanted in recalling if wanted.visitor_id]
    token_hashes = [wanted.token_hash for _, wanted in recalling if wanted.token_hash]
    for booking in await bookings.lately_lapsed(connection, list(keys), since, visitors, token_hashes):
        key = keys[booking.unit_id]
        snapshots[key] = _with_booking(snapshots[key], booking)


def _with_booking(snapshot: UnitSnapshot, booking: Booking) -> UnitSnapshot:
    if booking.status in CLAIMING:
        return snapshot._replace(booking=booking)
    return snapshot._replace(others={**snapshot.others, booking.number: booking})


# Commands that are stored together: found, decided one after the other, stored at once.


class Written(NamedTuple):
    decision: Decision
    project: Project
    changed: bool
    refs: Refs
    """Of all units that were stored together."""
    before: Unit | None = None
    """What the command found."""

    @property
    def unit(self) -> Unit:
        """A created unit learns its ``ref`` when it is stored."""
        unit = self.decision.unit
        return unit if unit.ref else unit._replace(ref=self.refs.get(unit.id, ""))

    @property
    def booking(self) -> Booking:
        """For commands that are about one."""
        assert self.decision.booking is not None
        return self.decision.booking

    @property
    def created(self) -> bool:
        return self.decision.created


Outcome = Written | DomainError


class Batch:
    """Decides the commands one after the other, each on what the ones before it left."""

    def __init__(self, commands: Sequence[Command], *, is_final: bool = False) -> None:
        """``is_final``: nothing is decided again; the units are locked, or nothing will be stored."""
        self._commands = commands
        self._is_final = is_final
        self._standings: dict[UnitKey, UnitSnapshot] = {}
        self._found: dict[UnitKey, Unit | None] = {}
        self._changed: dict[UnitKey, dict[int, Booking]] = {}
        """Of each unit that is to be stored, the bookings that were there and are stored with it."""
        self._begun: dict[UnitKey, dict[int, Booking]] = {}
        """The new ones."""
        self._overtaken: set[UnitKey] = set()
        self._told = SideEffects([], [])
        self._decided_at: datetime | None = None
        self._refs: Refs = {}
        self.deliveries = 0
        """That were made of what was stored."""
        self.outcomes: list[Outcome | None] = []

    async def decide(self, connection: Connection, known: ProjectCache, *, locked: bool) -> None:
        keys = sorted({command.key for command in self._commands})
        asked = asking(self._commands)
        now, snapshots = await load_for_update(connection, known, keys, locked=locked, counted=counted(asked))
        self._decided_at = now
        self._standings = dict(zip(keys, snapshots, strict=True))
        self._found = {key: snapshot.unit for key, snapshot in self._standings.items()}
        lapsed = [key for key in keys if self._is_lapsed(key, now)]
        self._overtaken = await load_related_bookings(
            connection, self._standings, asked, lapsed, now, several=len(keys) < len(self._commands)
        )
        if self._is_final:
            self._overtaken.clear()
        for key in lapsed:
            if key not in self._overtaken:
                self._take(key, self._standings[key], expire(self._standings[key]), CLOCK, now)
        self.outcomes = [self._outcome(command, now) for command in self._commands]

    async def store(self, connection: Connection) -> None:
        changes = self._changes()
        if changes:
            assert self._decided_at is not None
            self.deliveries = await units.store(connection, changes, self._told, self._decided_at, self._refs)

    def is_stored(self) -> bool:
        return all(change.unit.id in self._refs for change in self._changes())

    async def look_for_stored(self, database: Database) -> None:
        """After a lost connection: what was on its way is stored, or it is not."""
        changes = [change for change in self._changes() if change.unit.id not in self._refs]
        if changes:
            async with database.writing() as connection:
                found = await units.find_stored(connection, changes)
            self._refs.update(found)

    def forget_stored(self) -> None:
        """What a transaction answered is worth nothing when its commit is not known."""
        self._refs.clear()

    def settled(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome is not None]

    def outcomes_or(self, otherwise: Outcome | None) -> list[Outcome | None]:
        """The outcomes, but for units whose change was not stored: whatever was decided on it is void."""
        if not self.outcomes:
            return [otherwise] * len(self._commands)
        return [
            otherwise if self._is_void(command.key) else outcome
            for command, outcome in zip(self._commands, self.outcomes, strict=True)
        ]

    def _changes(self) -> list[Change]:
        """In the order of their keys, as the snapshots are."""
        return [
            Change(
                snapshot.unit,
                self._found[key],
                snapshot.turn,
                tuple(self._begun[key].values()) if key in self._begun else (),
                tuple(self._changed[key].values()),
            )
            for key, snapshot in self._standings.items()
            if key in self._changed and snapshot.unit is not None
        ]

    def _is_lapsed(self, key: UnitKey, now: datetime) -> bool:
        unit = self._standings[key].unit
        return unit is not None and unit.status in MID_BOOKING and is_expired(unit, now)

    def _is_void(self, key: UnitKey) -> bool:
        if key in self._overtaken:
            return True
        unit = self._standings[key].unit
        return key in self._changed and unit is not None and unit.id not in self._refs

    def _outcome(self, command: Command, now: datetime) -> Outcome | None:
        if command.key in self._overtaken:
            return None
        snapshot = self._standings[command.key]
        try:
            decision = command.decide(snapshot, now)
        except DomainError as refusal:
            # An answer, not a failure; where it was raised would hold this batch, which holds it.
            refusal.__context__ = None
            return refusal.with_traceback(None)
        changed = self._take(command.key, snapshot, decision, command.author, now)
        return Written(decision, snapshot.project, changed, self._refs, snapshot.unit)

    def _take(
        self, key: UnitKey, snapshot: UnitSnapshot, decision: Decision, author: Author, now: datetime
    ) -> bool:
        booking = decision.booking
        is_new_unit = decision.unit is not snapshot.unit
        found = None if booking is None else snapshot.booking_numbered(booking.number)
        if not is_new_unit and booking is found:
            return False
        changed = self._changed.setdefault(key, {})
        if booking is not None and booking is not found:
            begun = self._begun.setdefault(key, {})
            is_new = found is None or booking.number in begun
            (begun if is_new else changed)[booking.number] = booking
            note_hold(snapshot, booking)
        self._told.entries.append(
            AuditEntry(
                decision.unit.id,
                decision.unit.project_id,
                decision.unit.updated_at if is_new_unit else now,
                author,
                decision.action,
                None if booking is None else booking.reference,
                describe_change(snapshot, decision),
            )
        )
        self._told.events.extend(decision.events)
        self._standings[key] = apply(snapshot, decision)
        return True


# The one write path: every unit write is a command, and concurrent commands are stored together.
#
# The first command runs at once; what arrives meanwhile becomes the next batch. There is no timer: an
# idle system answers one command as fast as it can, a busy one packs its batches by itself.

BATCHES_IN_FLIGHT = 2
LARGEST_BATCH = 256
TURNS_UNTIL_ASKED_AGAIN = 3
"""Of the event loop: one in which callers are answered, one in which what they send next is read, and
one in which that is submitted."""
ROUNDS_AT_MOST = 10


_log = logging.getLogger(__name__)


class StillOvertaken(DatabaseUnavailable):
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
        if isinstance(outcome, DomainError):
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
    except DatabaseUnavailable as away:
        return [away] * len(commands)
    overtaken = [at for at, outcome in enumerate(outcomes) if outcome is None]
    locked = await _write_locked(database, [commands[at] for at in overtaken]) if overtaken else []
    for at, outcome in zip(overtaken, locked, strict=True):
        outcomes[at] = outcome
    count_batch(len(commands))
    return [outcome for outcome in outcomes if outcome is not None]


async def _write_as_found(
    database: Database, commands: Sequence[Command], store: bool
) -> list[Outcome | None]:
    """None for a command whose unit was overtaken by another writer."""
    batch = Batch(commands, is_final=not store)
    try:
        async with database.writing_autocommit() as connection:
            await batch.decide(connection, database.project_cache, locked=False)
            if store:
                await batch.store(connection)
        _hint(database, batch)
    except (TransactionConflict, ConstraintViolated) as refused:
        # Where something is stored it is decided again, under locks, and told if that is refused too.
        if not store:
            _log.warning("a dry run was refused by the database", extra={"fields": {"why": _why(refused)}})
            raise DatabaseUnavailable from None
    except DatabaseUnavailable as away:
        with suppress(DatabaseUnavailable):
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
    except DatabaseUnavailable as away:
        return [away] * len(commands)
    except ConstraintViolated as refused:
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
                await batch.decide(connection, database.project_cache, locked=True)
                await batch.store(connection)
                if not batch.is_stored():
                    raise TransactionConflict("another transaction created a unit first")
            _hint(database, batch)
            return batch.settled()
        except TransactionConflict as again:
            why = again.reason
        except CommitUnknown as unknown:
            batch.forget_stored()
            await batch.look_for_stored(database)
            return [outcome or unknown for outcome in batch.outcomes_or(unknown)]
    raise StillOvertaken(why)


def _hint(database: Database, batch: Batch) -> None:
    if batch.deliveries:
        database.notify_workers()


def _why(refused: TransactionConflict | ConstraintViolated) -> str:
    return refused.reason if isinstance(refused, TransactionConflict) else refused.constraint


def _warn(message: str, command: Command, why: str) -> None:
    """``why`` is for operators alone: a constraint that stays in the way is a fault of ours."""
    project_id, code = command.key
    fields = {"why": why, "projectId": project_id, "unitCode": code, "requestId": command.author.request_id}
    _log.warning(message, extra={"fields": fields})
