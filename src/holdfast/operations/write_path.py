"""The one write path: every unit write is a command, and concurrent commands are stored together."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol
from uuid import UUID

from holdfast.domain import errors
from holdfast.domain.audit import CLOCK, AuditEntry, Author
from holdfast.domain.booking import CLAIMING, HOLDING, Booking, LiveHold, NetworkHolds
from holdfast.domain.decision import Decision, Needs, UnitSnapshot, apply, describe_change, expire
from holdfast.domain.errors import (
    DatabaseUnavailable,
    DomainError,
    IdempotencyKeyUsed,
    InvalidInput,
    PaymentUsed,
    PreconditionFailed,
    TooManyHolds,
    TransitionNotAllowed,
)
from holdfast.domain.project import Project
from holdfast.domain.status import LOCKED, MID_BOOKING
from holdfast.domain.unit import Unit, is_expired
from holdfast.observability.metrics import count_batch, count_waiting
from holdfast.operations.events import with_payload
from holdfast.storage import bookings, units
from holdfast.storage.database import (
    CommitUnknown,
    Connection,
    ConstraintViolated,
    Database,
    ProjectCache,
    TransactionConflict,
    wait_for_standby,
)
from holdfast.storage.units import Refs, SideEffects, UnitKey, UnitWrite, load_for_update

NO_NEEDS = Needs()


class Command(Protocol):
    """One write to one unit."""

    @property
    def key(self) -> UnitKey: ...

    @property
    def author(self) -> Author: ...

    @property
    def needs(self) -> Needs:
        """The bookings and holds that it needs besides the unit; ``NO_NEEDS`` itself if there are none."""

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        """Pure; raises a DomainError."""


# The bookings and live holds that commands need besides their unit.

Snapshots = dict[UnitKey, UnitSnapshot]
KeyedNeeds = list[tuple[UnitKey, Needs]]


def _networks(needs: KeyedNeeds) -> Counter[tuple[UUID, UUID]]:
    """Count the requests for holds by network of a project: (its id, the project's id)."""
    asked = ((need.holder.project_network_id, key[0]) for key, need in needs)
    return Counter((network_id, project_id) for network_id, project_id in asked if network_id)


async def load_related_bookings(
    connection: Connection,
    snapshots: Snapshots,
    needs: KeyedNeeds,
    expired: Sequence[UnitKey],
    free: KeyedNeeds,
    now: datetime,
) -> set[UnitKey]:
    """Add bookings to the snapshots; return the keys of units that have changed since they were loaded.

    ``free``: the needs of commands whose unit is free, or may become so in this batch.
    """
    if not needs and not expired:
        return set()
    overtaken = await _load_bookings(connection, snapshots, needs, expired)
    await _load_payments(connection, snapshots, needs)
    await _load_lately_expired(connection, snapshots, free, now)
    return overtaken


def _count_hold(snapshot: UnitSnapshot, booking: Booking) -> None:
    """Count the hold for the commands that follow in the same batch."""
    if booking.status not in HOLDING or booking.hold_expires_at is None:
        return
    for holder, slot in zip(booking.holder, booking.slots, strict=False):
        if holder is not None and slot is not None and holder in snapshot.live_holds:
            snapshot.live_holds[holder].append(LiveHold(slot, booking.hold_expires_at))


def _is_free(snapshot: UnitSnapshot) -> bool:
    return snapshot.unit is not None and snapshot.unit.status not in LOCKED


async def _load_bookings(
    connection: Connection, snapshots: Snapshots, needs: KeyedNeeds, expired: Sequence[UnitKey]
) -> set[UnitKey]:
    """Load the bookings that claim units, that commands name, and that the same requests have made before."""
    wanting = {key for key, need in needs if need.claim}.union(expired)
    claimed = {
        unit.id: key for key in wanting if (unit := snapshots[key].unit) is not None and unit.status in LOCKED
    }
    numbered = {need.booking_number: key for key, need in needs if need.booking_number is not None}
    repeated = {unit.id: key for key, need in needs if need.idempotency_id and (unit := snapshots[key].unit)}
    requests = [need.idempotency_id for _, need in needs if need.idempotency_id]
    if not (claimed or numbered or repeated):
        return set()
    keys, unknown, overtaken = claimed | repeated, set(claimed.values()), set()
    wanted = (list(claimed), list(numbered), list(repeated), requests)
    for turn, booking in await bookings.load_related(connection, *wanted):
        key = keys.get(booking.unit_id) or numbered[booking.number]
        if snapshots[key].turn != turn:
            overtaken.add(key)
        if booking.status in CLAIMING:
            unknown.discard(key)
        snapshots[key] = _with_booking(snapshots[key], booking)
    return overtaken | unknown


async def _load_lately_expired(
    connection: Connection, snapshots: Snapshots, needs: KeyedNeeds, now: datetime
) -> None:
    recent = [(key, need) for key, need in needs if need.visitor_id is not None or need.token_hash]
    keys = {unit.id: key for key, _ in recent if (unit := snapshots[key].unit)}
    if not keys:
        return
    since = now - timedelta(seconds=max(need.expired_within_seconds for _, need in recent))
    visitors = [need.visitor_id for _, need in recent if need.visitor_id]
    token_hashes = [need.token_hash for _, need in recent if need.token_hash]
    for booking in await bookings.load_lately_expired(connection, list(keys), since, visitors, token_hashes):
        key = keys[booking.unit_id]
        snapshots[key] = _with_booking(snapshots[key], booking)


async def _load_payments(connection: Connection, snapshots: Snapshots, needs: KeyedNeeds) -> None:
    named = [(key, need.payment_id) for key, need in needs if need.payment_id is not None]
    if named:
        payments = await bookings.load_payments(connection, [payment_id for _, payment_id in named])
        for key, _ in named:
            snapshots[key] = snapshots[key]._replace(payments=payments)


def _with_booking(snapshot: UnitSnapshot, booking: Booking) -> UnitSnapshot:
    if booking.status in CLAIMING:
        return snapshot._replace(booking=booking)
    return snapshot._replace(others={**snapshot.others, booking.number: booking})


class WriteResult(NamedTuple):
    decision: Decision
    project: Project
    changed: bool
    before: Unit | None = None
    """The unit as the command found it."""
    new_ref: str = ""
    """The ``ref`` that a created unit got when it was stored."""

    @property
    def unit(self) -> Unit:
        return self.decision.unit._replace(ref=self.new_ref) if self.new_ref else self.decision.unit

    @property
    def booking(self) -> Booking:
        """Return the booking, of commands that are about one."""
        assert self.decision.booking is not None
        return self.decision.booking

    @property
    def created(self) -> bool:
        return self.decision.created


Outcome = WriteResult | DomainError

_ACKNOWLEDGING = (WriteResult, IdempotencyKeyUsed, PaymentUsed, PreconditionFailed, TransitionNotAllowed)
"""Outcomes that tell whoever repeats a request that it was done the first time."""


class Batch:
    """Decides the commands one after the other, each on what the ones before it left."""

    def __init__(self, commands: Sequence[Command], *, is_final: bool = False) -> None:
        """``is_final``: nothing is decided again; the units are locked, or nothing will be stored."""
        self._commands = commands
        self._is_final = is_final
        self._snapshots: dict[UnitKey, UnitSnapshot] = {}
        self._found: dict[UnitKey, Unit | None] = {}
        self._changed: dict[UnitKey, dict[int, Booking]] = {}
        """For each unit that is to be stored, the existing bookings that are stored with it."""
        self._new: dict[UnitKey, dict[int, Booking]] = {}
        self._overtaken: set[UnitKey] = set()
        self._effects = SideEffects([], [], [])
        self._now: datetime
        self._refs: Refs = {}
        self._has_standby = False
        self._is_confirmed = False
        """Whether the standby has what was read: something was committed after it."""
        self.deliveries = 0
        """How many were inserted."""
        self.outcomes: list[Outcome | None] = []

    async def load(self, connection: Connection, project_cache: ProjectCache, *, locked: bool) -> None:
        keys = sorted({command.key for command in self._commands})
        self._needs = [
            (command.key, need) for command in self._commands if (need := command.needs) is not NO_NEEDS
        ]
        if locked:
            await bookings.lock_networks(connection, _networks(self._needs))
        loaded = await load_for_update(connection, project_cache, keys, locked=locked)
        now, self._has_standby = loaded.at, loaded.has_standby
        self._now, self._snapshots = now, dict(zip(keys, loaded.snapshots, strict=True))
        self._found = {key: snapshot.unit for key, snapshot in self._snapshots.items()}
        self._expired = [
            key
            for key, snapshot in self._snapshots.items()
            if (unit := snapshot.unit) is not None and unit.status in MID_BOOKING and is_expired(unit, now)
        ]
        # Only of a free unit does it matter who asks for it; the others cost no query. One that is not free
        # may become so by another command of the batch.
        several = len(keys) < len(self._commands)
        self._free = [
            (key, need)
            for key, need in self._needs
            if several or _is_free(self._snapshots[key]) or key in self._expired
        ]

    @asynccontextmanager
    async def counting_holds(self, database: Database, connection: Connection) -> AsyncIterator[None]:
        """Decide and store in one transaction that locks the networks whose holds count, if there are any."""
        networks = _networks(self._free)
        if not networks:
            yield
            return
        try:
            async with database.transaction(connection):
                await bookings.lock_networks(connection, networks)
                # Time and units may have changed while it waited.
                await self.load(connection, database.project_cache, locked=False)
                yield
        except BaseException:
            self.forget_stored()
            raise

    async def decide(self, connection: Connection) -> None:
        now = self._now
        self._overtaken = await load_related_bookings(
            connection, self._snapshots, self._needs, self._expired, self._free, now
        )
        if self._is_final:
            self._overtaken.clear()
        await self._load_live_holds(connection)
        for key in self._expired:
            if key not in self._overtaken:
                self._accept(key, self._snapshots[key], expire(self._snapshots[key]), CLOCK, now)
        self.outcomes = [self._outcome(command, now) for command in self._commands]

    def decide_past(self, times: Sequence[datetime]) -> None:
        """Decide each command on new units at its own time; they come in the order of time."""
        self.outcomes = [self._outcome(*dated) for dated in zip(self._commands, times, strict=True)]

    async def _load_live_holds(self, connection: Connection) -> None:
        needs = [need for _, need in self._free]
        holders = [set(filter(None, kind)) for kind in zip(*(need.holder for need in needs), strict=True)]
        if any(holders):
            percent, networks = max(need.share_percent for need in needs), _networks(self._free)
            # Whoever has not locked the units must not wait for them with locked bookings.
            live = await units.load_live_holds(connection, holders[:-1], self._now, clear=self._is_final)
            of_networks = await bookings.load_network_holds(connection, networks, percent, self._now)
            for key, _ in self._free:
                snapshot = self._snapshots[key]
                self._snapshots[key] = snapshot._replace(live_holds=live, network_holds=of_networks)

    async def store(self, connection: Connection) -> None:
        changes = self._changes()
        if changes:
            async for stored in units.store(connection, changes, self._effects, self._now):
                self._refs.update(stored.refs)
                self.deliveries += stored.deliveries

    async def confirm(self, connection: Connection) -> None:
        """Make durable what the outcomes acknowledge and this batch did not write itself."""
        if not self._refs and any(map(self._is_unconfirmed, self._commands, self.outcomes)):
            await wait_for_standby(connection)
        self._is_confirmed = True

    async def find_stored(self, database: Database) -> None:
        """After a lost connection, find out which changes were stored."""
        changes = [change for change in self._changes() if change.unit.id not in self._refs]
        if changes:
            async with database.writing() as connection:
                found = await units.find_stored(connection, changes)
            self._refs.update(found)

    def forget_stored(self) -> None:
        """Discard the results of a transaction whose commit is not known."""
        self._refs.clear()
        self._is_confirmed = False

    def outcomes_or(self, otherwise: Outcome | None) -> list[Outcome | None]:
        """Return the outcomes, with ``otherwise`` for those that rest on a change that was not stored."""
        if not self.outcomes:
            return [otherwise] * len(self._commands)
        void = self._overtaken | self.not_stored()
        return [
            otherwise
            if command.key in void
            or (void and isinstance(outcome, PaymentUsed | TooManyHolds))
            or self._is_unconfirmed(command, outcome)
            else self._with_ref(outcome)
            for command, outcome in zip(self._commands, self.outcomes, strict=True)
        ]

    def _is_unconfirmed(self, command: Command, outcome: Outcome | None) -> bool:
        """Return whether the outcome acknowledges what was only read, and may be lost with the primary."""
        return (
            self._has_standby
            and not self._is_confirmed
            and command.key not in self._changed
            and isinstance(outcome, _ACKNOWLEDGING)
        )

    def _with_ref(self, outcome: Outcome | None) -> Outcome | None:
        """Return the outcome with the ``ref`` of a unit that this batch has created."""
        if not isinstance(outcome, WriteResult) or outcome.decision.unit.ref:
            return outcome
        decision, project, changed, before, _ = outcome
        return WriteResult(decision, project, changed, before, self._refs.get(decision.unit.id, ""))

    def _changes(self) -> list[UnitWrite]:
        """Return the changes in the order of their keys, as the snapshots are."""
        return [
            UnitWrite(
                snapshot.unit,
                self._found[key],
                snapshot.turn,
                tuple(self._new[key].values()) if key in self._new else (),
                tuple(self._changed[key].values()),
            )
            for key, snapshot in self._snapshots.items()
            if key in self._changed and snapshot.unit is not None
        ]

    def not_stored(self) -> set[UnitKey]:
        """Return the units that were to be stored and were not."""
        changed = ((key, self._snapshots[key].unit) for key in self._changed)
        return {key for key, unit in changed if unit is not None and unit.id not in self._refs}

    def _outcome(self, command: Command, now: datetime) -> Outcome | None:
        if command.key in self._overtaken:
            return None
        snapshot = self._snapshots[command.key]
        try:
            decision = command.decide(snapshot, now)
        except DomainError as error:
            # It is kept as an outcome: its traceback would refer to this batch, which refers to it.
            error.__context__ = None
            return error.with_traceback(None)
        changed = self._accept(command.key, snapshot, decision, command.author, now)
        return WriteResult(decision, snapshot.project, changed, snapshot.unit)

    def _accept(
        self, key: UnitKey, snapshot: UnitSnapshot, decision: Decision, author: Author, now: datetime
    ) -> bool:
        booking = decision.booking
        is_new_unit = decision.unit is not snapshot.unit
        found = None if booking is None else snapshot.booking_numbered(booking.number)
        if not is_new_unit and booking is found:
            return False
        changed = self._changed.setdefault(key, {})
        if booking is not None and booking is not found:
            new = self._new.setdefault(key, {})
            is_new = found is None or booking.number in new
            (new if is_new else changed)[booking.number] = booking
            _count_hold(snapshot, booking)
            network_id = booking.holder.project_network_id
            if found is None and network_id in snapshot.network_holds:
                held = snapshot.network_holds[network_id]
                first_end = held.first_end or booking.hold_expires_at
                snapshot.network_holds[network_id] = NetworkHolds(held.live + 1, first_end, held.units)
            if booking.payment_id in snapshot.payments:
                snapshot.payments[booking.payment_id] = booking.number
        self._effects.entries.append(
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
        for event in decision.events:
            self._effects.events.append(with_payload(event, snapshot.project.slug))
        if decision.email is not None:
            self._effects.emails.append(decision.email)
        self._snapshots[key] = apply(snapshot, decision)
        return True


# The first command runs at once; the commands that arrive meanwhile become the next batch. There is no timer:
# an idle system runs one command as fast as it can, and the batches of a busy one grow by themselves.

BATCHES_IN_FLIGHT = 2
LARGEST_BATCH = 256
TURNS_UNTIL_RESUBMITTED = 3
"""Of the event loop: one in which callers are answered, one in which their next requests are read, and one in
which these are submitted."""
MAX_ROUNDS = 10
MAX_WAITING = 2000
LONGEST_WAIT_SECONDS = 5.0
CALLER_CHECKED_AFTER_SECONDS = 1.0

has_caller_left: ContextVar[Callable[[], Awaitable[bool]] | None] = ContextVar("caller", default=None)
"""Set by whoever receives the request that a command belongs to."""

_log = logging.getLogger(__name__)


class RetriesExhausted(TransactionConflict):
    text = "Other changes came first each time, so nothing was stored. Try again shortly."


class _Waiting(NamedTuple):
    command: Command
    future: asyncio.Future[WriteResult | Exception]
    since: float
    has_caller_left: Callable[[], Awaitable[bool]] | None

    def answer(self, outcome: WriteResult | Exception) -> None:
        # Done already means that its caller has given up waiting.
        if not self.future.done():
            self.future.set_result(outcome)

    async def drop_if_caller_left(self) -> None:
        if self.has_caller_left is not None and await self.has_caller_left():
            self.answer(errors.Overloaded())


class WritePath:
    """Collects the commands of one process into batches. Few may wait, and not for long."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: deque[_Waiting] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def submit(self, command: Command) -> WriteResult:
        """Once begun, a command runs to its end, whether its caller waits for it or not."""
        if len(self._waiting) >= MAX_WAITING:
            raise errors.Overloaded
        loop = asyncio.get_running_loop()
        future: asyncio.Future[WriteResult | Exception] = loop.create_future()
        self._waiting.append(_Waiting(command, future, loop.time(), has_caller_left.get()))
        if self._timer is None:
            self._timer = loop.call_later(LONGEST_WAIT_SECONDS, self._refuse_old)
        if len(self._running) < (BATCHES_IN_FLIGHT if len(self._waiting) >= LARGEST_BATCH else 1):
            self._running.add(loop.create_task(self._run_batches()))
        outcome = await future
        if isinstance(outcome, Exception):
            try:
                raise outcome
            finally:
                # It refers to this frame, which must not refer to it: a cycle would wait for the collector.
                del outcome, future
        return outcome

    async def close(self) -> None:
        while self._running:
            await asyncio.wait(self._running)

    def _refuse_old(self) -> None:
        """Run by a timer: the batch before them may hang in a network that answers nothing."""
        loop = asyncio.get_running_loop()
        while self._waiting and self._waiting[0].since <= loop.time() - LONGEST_WAIT_SECONDS:
            self._waiting.popleft().answer(errors.Overloaded())
        refuse_at = self._waiting[0].since + LONGEST_WAIT_SECONDS if self._waiting else None
        self._timer = None if refuse_at is None else loop.call_at(refuse_at, self._refuse_old)

    async def _run_batches(self) -> None:
        """Run one batch at a time: each has a cost of its own, so one large batch beats two small ones.

        For the same reason callers that were just answered may submit again before the next batch starts.
        A second runner helps as long as full batches wait.
        """
        try:
            while self._waiting and (len(self._running) == 1 or len(self._waiting) >= LARGEST_BATCH):
                count_waiting(len(self._waiting))
                size = min(len(self._waiting), LARGEST_BATCH)
                await self._run_batch([self._waiting.popleft() for _ in range(size)])
                for _ in range(TURNS_UNTIL_RESUBMITTED):
                    await asyncio.sleep(0)
        finally:
            # Not in a callback of the task: a command that is submitted before it would wait for ever.
            self._running.remove(asyncio.current_task())  # type: ignore[arg-type]

    async def _run_batch(self, batch: Sequence[_Waiting]) -> None:
        outcomes: Sequence[WriteResult | Exception]
        try:
            checked_before = asyncio.get_running_loop().time() - CALLER_CHECKED_AFTER_SECONDS
            # All at once: each takes turns of the event loop, which are long when much is waiting.
            await asyncio.gather(*(one.drop_if_caller_left() for one in batch if one.since < checked_before))
            batch = [one for one in batch if one.since >= checked_before or not one.future.done()]
            outcomes = await write(self._database, [one.command for one in batch]) if batch else []
        except Exception as failure:  # noqa: BLE001 - its callers wait for it
            outcomes = [failure] * len(batch)
        except BaseException:
            for one in batch:
                one.future.cancel()
            raise
        for one, outcome in zip(batch, outcomes, strict=True):
            one.answer(outcome)


async def write(database: Database, commands: Sequence[Command], *, store: bool = True) -> list[Outcome]:
    """Run the commands together; each gets its own outcome.

    First load the units without a lock, decide, and store each one that has not changed since. Those that
    another writer has changed are decided again under a lock. ``store=False`` decides and writes nothing.
    """
    try:
        outcomes = await _write_as_found(database, commands, store)
    except DatabaseUnavailable as unavailable:
        return [unavailable] * len(commands)
    overtaken = [index for index, outcome in enumerate(outcomes) if outcome is None]
    locked = await _write_locked(database, [commands[index] for index in overtaken]) if overtaken else []
    for index, outcome in zip(overtaken, locked, strict=True):
        outcomes[index] = outcome
    count_batch(len(commands))
    return [outcome for outcome in outcomes if outcome is not None]


async def _write_as_found(
    database: Database, commands: Sequence[Command], store: bool
) -> list[Outcome | None]:
    """None for a command whose unit was overtaken by another writer."""
    batch = Batch(commands, is_final=not store)
    try:
        async with database.writing_autocommit() as connection:
            await batch.load(connection, database.project_cache, locked=False)
            async with batch.counting_holds(database, connection):
                await batch.decide(connection)
                if store:
                    await batch.store(connection)
            if store:
                await batch.confirm(connection)
        if batch.deliveries:
            database.notify_workers()
    except (TransactionConflict, ConstraintViolated) as error:
        # A write is decided again under locks, and an error is reported if that fails too.
        if not store:
            why = error.reason if isinstance(error, TransactionConflict) else error.constraint
            _log.warning("the database rejected a dry run", extra={"fields": {"why": why}})
            raise DatabaseUnavailable from None
    except DatabaseUnavailable as unavailable:
        with suppress(DatabaseUnavailable):
            await batch.find_stored(database)
        return batch.outcomes_or(unavailable)
    return batch.outcomes_or(None) if store else list(batch.outcomes)


async def _write_locked(database: Database, commands: Sequence[Command]) -> list[Outcome]:
    try:
        return await _write_in_transaction(database, commands)
    except RetriesExhausted as exhausted:
        if len(commands) == 1:
            _warn("a change was overtaken again and again", commands[0], exhausted.reason)
            return [exhausted]
    except DatabaseUnavailable as unavailable:
        return [unavailable] * len(commands)
    except ConstraintViolated as violated:
        if len(commands) == 1:
            _warn("the database rejected a change that the domain allows", commands[0], violated.constraint)
            return [InvalidInput.at("", str(violated))]
    # One invalid row must not fail the others.
    return [outcome for command in commands for outcome in await _write_locked(database, [command])]


async def _write_in_transaction(database: Database, commands: Sequence[Command]) -> list[Outcome]:
    why = ""
    for _ in range(MAX_ROUNDS):
        batch = Batch(commands, is_final=True)
        try:
            async with database.writing() as connection:
                await batch.load(connection, database.project_cache, locked=True)
                await batch.decide(connection)
                await batch.store(connection)
                if batch.not_stored():
                    raise TransactionConflict("another transaction created a unit first")
                await batch.confirm(connection)
            if batch.deliveries:
                database.notify_workers()
            return [outcome for outcome in batch.outcomes_or(None) if outcome is not None]
        except TransactionConflict as again:
            why = again.reason
        except CommitUnknown as unknown:
            batch.forget_stored()
            await batch.find_stored(database)
            return [outcome or unknown for outcome in batch.outcomes_or(unknown)]
    raise RetriesExhausted(why)


def _warn(message: str, command: Command, why: str) -> None:
    """``why`` is for operators: a constraint that rejects what the domain allows is a bug."""
    project_id, code = command.key
    fields = {"why": why, "projectId": project_id, "unitCode": code, "requestId": command.author.request_id}
    _log.warning(message, extra={"fields": fields})
