"""Live updates of boards: one poll of the database serves all watchers of a process."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.board import BoardUnit, Counts
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.status import Status
from holdfast.storage import boards
from holdfast.storage.database import Connection, Database, current_time

POLL_SECONDS = 0.4
LONGEST_PAUSE_SECONDS = 0.7
"""Where a poll takes long: a change still appears within a second."""
# The time of a change is read before it is committed, so a change may appear a little late. A process that
# was stopped in between may be later than that, so now and then a poll goes further back.
LATE_BY = timedelta(seconds=5)
VERY_LATE_BY = timedelta(minutes=5)
LOOK_BACK_EVERY_SECONDS = 30.0
MOST_CHANGES = 500
"""With more at a time it is quicker to load the whole board again."""
MAX_TIME_AWAY = timedelta(hours=1)
CURRENT_FOR_SECONDS = 3.0
"""For so long after a poll, watchers count as up to date."""

logger = logging.getLogger("holdfast.watching")


class BoardChanges(NamedTuple):
    timestamp: datetime | None
    """The database's time; everything that was committed before is included."""
    units: Sequence[BoardUnit]
    counts: Counts | None
    everything: bool
    """Too much has changed: the whole board is loaded again."""


class Watcher:
    """Collects the changes that its browser has not received yet; of each unit the latest state only."""

    def __init__(self, project_id: UUID, leave: Callable[[Watcher], None]) -> None:
        self.project_id = project_id
        self._leave = leave
        self._arrived = asyncio.Event()
        self._units: dict[UUID, BoardUnit] = {}
        self._counts: Counts | None = None
        self._everything = False
        self.timestamp: datetime | None = None

    async def wait(self) -> None:
        await self._arrived.wait()

    def take(self) -> BoardChanges:
        changes = BoardChanges(self.timestamp, list(self._units.values()), self._counts, self._everything)
        self._units, self._counts, self._everything = {}, None, False
        self._arrived.clear()
        return changes

    def add(
        self,
        timestamp: datetime,
        units: Sequence[BoardUnit],
        counts: Counts | None,
        *,
        everything: bool = False,
    ) -> None:
        self.timestamp = timestamp
        for unit in units:
            kept = self._units.get(unit.id)
            if kept is None or unit.version >= kept.version:
                self._units[unit.id] = unit
        self._counts = counts or self._counts
        if everything or len(self._units) > MOST_CHANGES:
            self._everything, self._units = True, {}
        if self._units or self._counts or self._everything:
            self._arrived.set()

    def close(self) -> None:
        self._leave(self)


@dataclass
class _Audience:
    """The watchers of one project."""

    watchers: set[Watcher] = field(default_factory=set)
    layout_turn: int | None = None
    """At the last poll; when it changes, the board is loaded again."""
    sent: dict[UUID, tuple[int, Status]] = field(default_factory=dict)
    """The state of each unit as last sent, so that it is sent once. The version alone is not enough: a
    decision made just before the end of a hold may have that of an expiry that is never written."""

    def list_unsent(self, units: Sequence[BoardUnit]) -> list[BoardUnit]:
        return [unit for unit in units if self.sent.get(unit.id) != (unit.version, unit.status)]

    def has_new_layout(self, turn: int | None) -> bool:
        earlier, self.layout_turn = self.layout_turn, turn
        return earlier not in (None, turn)

    def send(
        self, timestamp: datetime, units: Sequence[BoardUnit], counts: Counts | None, *, everything: bool
    ) -> None:
        self.sent.update((unit.id, (unit.version, unit.status)) for unit in units)
        for watcher in self.watchers:
            watcher.add(timestamp, units, counts, everything=everything)


class LiveUpdates:
    """One for each process. Polls as long as somebody watches."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._audiences: dict[UUID, _Audience] = {}
        self._polling: asyncio.Task[None] | None = None
        self._since: datetime | None = None
        self._polled_at = self._looked_back_at = 0.0
        self._is_away = False
        self._poll_lock = asyncio.Lock()

    @property
    def is_current(self) -> bool:
        return monotonic() - self._polled_at < CURRENT_FOR_SECONDS

    def now(self) -> datetime | None:
        """Return the time of the database, estimated from the last poll."""
        return self._since and self._since + timedelta(seconds=monotonic() - self._polled_at)

    async def watch(
        self, project_id: UUID, since: datetime | None, layout_turn: int | None = None
    ) -> Watcher:
        """Changes since ``since`` are sent first. ``layout_turn``: of the board that is shown."""
        watcher = Watcher(project_id, self._leave)
        self._audiences.setdefault(project_id, _Audience()).watchers.add(watcher)
        if self._polling is None or self._polling.done():
            self._since, self._looked_back_at = None, monotonic()
            self._polling = asyncio.get_running_loop().create_task(self._poll())
        try:
            await self._catch_up(watcher, since, layout_turn)
        except BaseException:
            watcher.close()
            raise
        return watcher

    async def close(self) -> None:
        if self._polling is not None:
            self._polling.cancel()
            with suppress(asyncio.CancelledError):
                await self._polling

    async def run_once(self) -> None:
        """Poll all watched projects once; two polls at a time would send everything twice."""
        async with self._poll_lock:
            audiences = dict(self._audiences)
            project_ids = list(audiences)
            looks_back = monotonic() - self._looked_back_at > LOOK_BACK_EVERY_SECONDS
            async with self._database.reading() as connection:
                timestamp = await current_time(connection)
                since = (self._since or timestamp) - (VERY_LATE_BY if looks_back else LATE_BY)
                changes = await boards.changes(connection, project_ids, since, MOST_CHANGES)
                unsent = {one: audiences[one].list_unsent(units) for one, units in changes.items()}
                # Of more than are read, those that were committed late may be the ones that were not read.
                full = {one for one, units in changes.items() if len(units) > MOST_CHANGES}
                changed = [one for one, units in unsent.items() if units or (looks_back and one in full)]
                counts = await boards.counts(connection, changed) if changed else {}
                turns = await boards.layout_turns(connection, project_ids)
            for project_id, audience in audiences.items():
                too_many = project_id in full and project_id in counts
                everything = audience.has_new_layout(turns.get(project_id)) or too_many
                units = unsent.get(project_id, [])
                audience.send(timestamp, units, counts.get(project_id), everything=everything)
            self._since, self._polled_at = timestamp, monotonic()
            if looks_back:
                self._looked_back_at = self._polled_at

    async def _poll(self) -> None:
        while self._audiences:
            began_at = monotonic()
            try:
                await self.run_once()
                self._is_away = False
            except DatabaseUnavailable:
                if not self._is_away:
                    logger.warning("boards are not kept up to date: the database is unavailable")
                self._is_away = True
            except Exception:
                logger.exception("the changes of boards could not be loaded")
            await asyncio.sleep(max(POLL_SECONDS, min(4 * (monotonic() - began_at), LONGEST_PAUSE_SECONDS)))

    async def _catch_up(self, watcher: Watcher, since: datetime | None, layout_turn: int | None) -> None:
        """Wait for a running poll: older changes must not be sent after newer ones."""
        async with self._poll_lock:
            project_id = watcher.project_id
            async with self._database.reading() as connection:
                timestamp = watcher.timestamp = await current_time(connection)
                turn = (await boards.layout_turns(connection, [project_id]))[project_id]
                audience = self._audiences[project_id]
                audience.layout_turn = audience.layout_turn or turn
                if since is None:
                    return
                everything = layout_turn not in (None, turn) or since <= timestamp - MAX_TIME_AWAY
                found = () if everything else await self._missed(connection, project_id, since)
                counts = await boards.counts(connection, [project_id]) if found or everything else {}
            watcher.add(timestamp, found, counts.get(project_id), everything=everything)

    async def _missed(self, connection: Connection, project_id: UUID, since: datetime) -> Sequence[BoardUnit]:
        found = await boards.changes(connection, [project_id], since - LATE_BY, MOST_CHANGES)
        if len(found.get(project_id, ())) > MOST_CHANGES:
            # A page that was made just after a bulk shows it: to show everything anew would never end.
            found = await boards.changes(connection, [project_id], since, MOST_CHANGES)
        return found.get(project_id, ())

    def _leave(self, watcher: Watcher) -> None:
        audience = self._audiences.get(watcher.project_id)
        if audience is not None:
            audience.watchers.discard(watcher)
            if not audience.watchers:
                del self._audiences[watcher.project_id]
