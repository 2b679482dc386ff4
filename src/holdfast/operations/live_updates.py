"""Who watches which project, and what they are told. One look serves however many watch."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from time import monotonic
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.layout import BoardUnit, Counts
from holdfast.domain.status import Status
from holdfast.storage import boards
from holdfast.storage.database import Connection, Database

POLL_SECONDS = 0.4
LONGEST_PAUSE_SECONDS = 0.7
"""Where a poll takes long: a change still appears within a second."""
# The time of a change is read before the change is committed: what is committed now may be a little old.
# A process that stood still in between may be later than that, so now and then it is looked further back.
LATE_BY = timedelta(seconds=5)
VERY_LATE_BY = timedelta(minutes=5)
LOOK_BACK_EVERY_SECONDS = 30.0
MOST_CHANGES = 500
"""With more of them at a time it is quicker to show everything anew."""
AWAY_AT_MOST = timedelta(hours=1)
CURRENT_FOR_SECONDS = 3.0
"""After a poll, watchers may be told that they are up to date."""

logger = logging.getLogger("holdfast.watching")


class News(NamedTuple):
    moment: datetime | None
    """The database's time; what was committed before is told."""
    units: Sequence[BoardUnit]
    counts: Counts | None
    everything: bool
    """Too much has changed to be told one by one."""


class Watcher:
    """Keeps what its browser has not been told yet; of each unit the latest state only."""

    def __init__(self, project_id: UUID, leave: Callable[[Watcher], None]) -> None:
        self.project_id = project_id
        self._leave = leave
        self._arrived = asyncio.Event()
        self._units: dict[UUID, BoardUnit] = {}
        self._counts: Counts | None = None
        self._everything = False
        self.moment: datetime | None = None

    async def arrival(self) -> None:
        await self._arrived.wait()

    def take(self) -> News:
        news = News(self.moment, list(self._units.values()), self._counts, self._everything)
        self._units, self._counts, self._everything = {}, None, False
        self._arrived.clear()
        return news

    def tell(
        self, moment: datetime, units: Sequence[BoardUnit], counts: Counts | None, *, everything: bool = False
    ) -> None:
        self.moment = moment
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


class _Audience:
    """Of one project."""

    def __init__(self) -> None:
        self.watchers: set[Watcher] = set()
        self.layout_turn: int | None = None
        """At the last look; with another one the board is another picture."""
        self.told: dict[UUID, tuple[int, Status]] = {}
        """What each unit was last told to be: what is looked at twice is told once. The version alone is not
        enough: what was decided just before the end of a hold may have that of a release never written."""


class LiveUpdates:
    """One for each process. Polls as long as somebody watches."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._audiences: dict[UUID, _Audience] = {}
        self._polling: asyncio.Task[None] | None = None
        self._since: datetime | None = None
        self._polled_at = self._looked_back_at = 0.0
        self._is_away = False
        self._turn = asyncio.Lock()

    @property
    def is_current(self) -> bool:
        """Whether the database has been heard lately."""
        return monotonic() - self._polled_at < CURRENT_FOR_SECONDS

    def now(self) -> datetime | None:
        """The database's clock, as far as it is known here."""
        return self._since and self._since + timedelta(seconds=monotonic() - self._polled_at)

    async def watch(
        self, project_id: UUID, since: datetime | None, layout_turn: int | None = None
    ) -> Watcher:
        """``since``: what happened from then on is told first. ``layout_turn``: of the picture shown."""
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
        """One look at everything that is watched; two at a time would tell everything twice."""
        async with self._turn:
            await self._look()

    async def _look(self) -> None:
        project_ids = list(self._audiences)
        looks_back = monotonic() - self._looked_back_at > LOOK_BACK_EVERY_SECONDS
        async with self._database.reading() as connection:
            moment = await boards.now(connection)
            since = (self._since or moment) - (VERY_LATE_BY if looks_back else LATE_BY)
            changes = await boards.changes(connection, project_ids, since, MOST_CHANGES)
            fresh = {one: self._fresh(one, units) for one, units in changes.items()}
            # Of more than are read, those that were committed late may be the ones that were not read.
            full = {one for one, units in changes.items() if len(units) > MOST_CHANGES}
            changed = [one for one, units in fresh.items() if units or (looks_back and one in full)]
            counts = await boards.counts(connection, changed) if changed else {}
            turns = await boards.layout_turns(connection, project_ids)
        for project_id in project_ids:
            too_many = project_id in full and project_id in counts
            everything = self._is_arranged_anew(project_id, turns.get(project_id)) or too_many
            self._tell(project_id, moment, fresh.get(project_id, []), counts.get(project_id), everything)
        self._since, self._polled_at = moment, monotonic()
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
                    logger.warning("boards are not kept up to date: the database is away")
                self._is_away = True
            except Exception:
                logger.exception("a look at what changed on boards failed")
            await asyncio.sleep(max(POLL_SECONDS, min(4 * (monotonic() - began_at), LONGEST_PAUSE_SECONDS)))

    async def _catch_up(self, watcher: Watcher, since: datetime | None, layout_turn: int | None) -> None:
        """Not while it is looked: what is older would be told after what is newer."""
        async with self._turn:
            project_id = watcher.project_id
            async with self._database.reading() as connection:
                moment = watcher.moment = await boards.now(connection)
                turn = await boards.layout_turn(connection, project_id)
                audience = self._audiences[project_id]
                audience.layout_turn = audience.layout_turn or turn
                if since is None:
                    return
                everything = layout_turn not in (None, turn) or since <= moment - AWAY_AT_MOST
                found = () if everything else await self._missed(connection, project_id, since)
                counts = await boards.counts(connection, [project_id]) if found or everything else {}
            watcher.tell(moment, found, counts.get(project_id), everything=everything)

    async def _missed(self, connection: Connection, project_id: UUID, since: datetime) -> Sequence[BoardUnit]:
        found = await boards.changes(connection, [project_id], since - LATE_BY, MOST_CHANGES)
        if len(found.get(project_id, ())) > MOST_CHANGES:
            # A page that was made just after a bulk shows it: to show everything anew would never end.
            found = await boards.changes(connection, [project_id], since, MOST_CHANGES)
        return found.get(project_id, ())

    def _is_arranged_anew(self, project_id: UUID, turn: int | None) -> bool:
        audience = self._audiences.get(project_id)
        if audience is None:
            return False
        earlier, audience.layout_turn = audience.layout_turn, turn
        return earlier not in (None, turn)

    def _fresh(self, project_id: UUID, units: Sequence[BoardUnit]) -> list[BoardUnit]:
        audience = self._audiences.get(project_id)
        if audience is None:
            return []
        return [unit for unit in units if audience.told.get(unit.id) != (unit.version, unit.status)]

    def _tell(
        self,
        project_id: UUID,
        moment: datetime,
        fresh: Sequence[BoardUnit],
        counts: Counts | None,
        everything: bool,
    ) -> None:
        audience = self._audiences.get(project_id)
        if audience is None:
            return
        audience.told.update((unit.id, (unit.version, unit.status)) for unit in fresh)
        for watcher in audience.watchers:
            watcher.tell(moment, fresh, counts, everything=everything)

    def _leave(self, watcher: Watcher) -> None:
        audience = self._audiences.get(watcher.project_id)
        if audience is not None:
            audience.watchers.discard(watcher)
            if not audience.watchers:
                del self._audiences[watcher.project_id]
