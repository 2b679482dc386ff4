"""Commands that are stored together: found, decided one after the other, stored at once."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.domain.audit import CLOCK, Author, Entry
from holdfast.domain.booking import Booking
from holdfast.domain.decision import Decision, Standing, after, change_made, lapse
from holdfast.domain.errors import Refusal
from holdfast.domain.project import Project
from holdfast.domain.status import MID_BOOKING
from holdfast.domain.unit import Unit, is_lapsed
from holdfast.operations.command import Command
from holdfast.operations.surroundings import asking, counted, look_around, note_hold
from holdfast.storage import units
from holdfast.storage.database import Connection, Database, KnownProjects
from holdfast.storage.units import Change, Refs, SideEffects, UnitKey, load_for_update


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


Outcome = Written | Refusal


class Batch:
    """Decides the commands one after the other, each on what the ones before it left."""

    def __init__(self, commands: Sequence[Command], *, is_final: bool = False) -> None:
        """``is_final``: nothing is decided again; the units are locked, or nothing will be stored."""
        self._commands = commands
        self._is_final = is_final
        self._standings: dict[UnitKey, Standing] = {}
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

    async def decide(self, connection: Connection, known: KnownProjects, *, locked: bool) -> None:
        keys = sorted({command.key for command in self._commands})
        asked = asking(self._commands)
        now, standings = await load_for_update(connection, known, keys, locked=locked, counted=counted(asked))
        self._decided_at = now
        self._standings = dict(zip(keys, standings, strict=True))
        self._found = {key: standing.unit for key, standing in self._standings.items()}
        lapsed = [key for key in keys if self._is_lapsed(key, now)]
        self._overtaken = await look_around(
            connection, self._standings, asked, lapsed, now, several=len(keys) < len(self._commands)
        )
        if self._is_final:
            self._overtaken.clear()
        for key in lapsed:
            if key not in self._overtaken:
                self._take(key, self._standings[key], lapse(self._standings[key]), CLOCK, now)
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
        """In the order of their keys, as the standings are."""
        return [
            Change(
                standing.unit,
                self._found[key],
                standing.turn,
                tuple(self._begun[key].values()) if key in self._begun else (),
                tuple(self._changed[key].values()),
            )
            for key, standing in self._standings.items()
            if key in self._changed and standing.unit is not None
        ]

    def _is_lapsed(self, key: UnitKey, now: datetime) -> bool:
        unit = self._standings[key].unit
        return unit is not None and unit.status in MID_BOOKING and is_lapsed(unit, now)

    def _is_void(self, key: UnitKey) -> bool:
        if key in self._overtaken:
            return True
        unit = self._standings[key].unit
        return key in self._changed and unit is not None and unit.id not in self._refs

    def _outcome(self, command: Command, now: datetime) -> Outcome | None:
        if command.key in self._overtaken:
            return None
        standing = self._standings[command.key]
        try:
            decision = command.decide(standing, now)
        except Refusal as refusal:
            # An answer, not a failure; where it was raised would hold this batch, which holds it.
            refusal.__context__ = None
            return refusal.with_traceback(None)
        changed = self._take(command.key, standing, decision, command.author, now)
        return Written(decision, standing.project, changed, self._refs, standing.unit)

    def _take(
        self, key: UnitKey, standing: Standing, decision: Decision, author: Author, now: datetime
    ) -> bool:
        booking = decision.booking
        is_new_unit = decision.unit is not standing.unit
        found = None if booking is None else standing.booking_numbered(booking.number)
        if not is_new_unit and booking is found:
            return False
        changed = self._changed.setdefault(key, {})
        if booking is not None and booking is not found:
            begun = self._begun.setdefault(key, {})
            is_new = found is None or booking.number in begun
            (begun if is_new else changed)[booking.number] = booking
            note_hold(standing, booking)
        self._told.entries.append(
            Entry(
                decision.unit.id,
                decision.unit.project_id,
                decision.unit.updated_at if is_new_unit else now,
                author,
                decision.action,
                None if booking is None else booking.reference,
                change_made(standing, decision),
            )
        )
        self._told.events.extend(decision.events)
        self._standings[key] = after(standing, decision)
        return True
