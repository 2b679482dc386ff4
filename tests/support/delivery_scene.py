"""Units that change, endpoints that are told, a receiver that takes notes, and workers in between."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
from cryptography.fernet import Fernet

from holdfast.domain.audit import COMMAND
from holdfast.domain.endpoint import EndpointConfig
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.status import Status
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.units import PatchUnit
from holdfast.operations.write_path import WriteResult, write
from holdfast.settings import Settings
from holdfast.storage.database import Database
from holdfast.wiring import open_endpoints
from tests.support.delivery_checker import DeliveryHistory, faults_of
from tests.support.delivery_engine import OFF, ON, eventually
from tests.support.delivery_journal import Journal, journalling
from tests.support.inventory import new_project, replacement, store
from tests.support.server import LOOK_SECONDS, PATIENCE_SECONDS
from tests.support.sql import connected, owning, value
from tests.support.workers import Pace, Worker

OTHER = {ON: OFF, OFF: ON}

EVENTS = "select id::text, unit_id::text, unit_version, type, endpoint_ids::text[] from event"
_COLUMNS = "id::text, endpoint_id::text, unit_id::text, unit_version, event, body, attempts"
DELIVERIES = f"""
    select {_COLUMNS}, 'pending' as status from pending_delivery where unit_id is not null
    union all select {_COLUMNS}, status from ended_delivery where unit_id is not null
"""
ATTEMPTS = """
    select delivery_id::text, number, trigger, extract(epoch from started_at)::float8 as started_at,
        extract(epoch from ended_at)::float8 as ended_at, secret_id::text, status_code, cause,
        (
            select header ->> 1 from json_array_elements(request_headers) as header
            where header ->> 0 = 'X-Service-Signature'
        ) as signature
    from attempt
"""
IN_FLIGHT = "select delivery_id::text from in_flight"
UNSETTLED = "select exists (select from pending_delivery) or exists (select from in_flight)"


@dataclass
class Scene:
    database: Database
    subscribing: Endpoints
    journal: Journal
    settings: dict[str, str]
    pace: Pace
    folder: Path
    project_id: UUID
    workers: list[Worker] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    ordered: set[str] = field(default_factory=set)
    acknowledged: set[tuple[str, int]] = field(default_factory=set)
    _statuses: dict[str, Status] = field(default_factory=dict)

    async def start_workers(self, *names: str) -> list[Worker]:
        """And wait until they work."""
        started = [Worker(name, self.settings, self.folder) for name in names]
        self.workers += started
        await eventually(lambda: all(worker.is_working for worker in started))
        return started

    async def endpoint(self, path: str, **config: Any) -> UUID:
        issued = await self.subscribing.add(EndpointConfig(self.journal.url(path), **config), COMMAND)
        self.secrets[str(issued.endpoint.secret_id)] = issued.text
        if issued.endpoint.config.ordered:
            self.ordered.add(str(issued.endpoint.id))
        return issued.endpoint.id

    async def add_units(self, codes: Sequence[str]) -> None:
        await store(self.database, *(replacement(self.project_id, code) for code in codes))
        self._statuses.update(dict.fromkeys(codes, ON))

    async def change(self, *codes: str) -> None:
        """One event of each; insists while the database is away."""
        wanted = {code: OTHER[self._statuses[code]] for code in codes}
        async with asyncio.timeout(PATIENCE_SECONDS):
            while wanted:
                commands = [PatchUnit((self.project_id, code), {}, to) for code, to in wanted.items()]
                for code, outcome in zip(list(wanted), await write(self.database, commands), strict=True):
                    if isinstance(outcome, WriteResult):
                        self._note(code, outcome)
                        del wanted[code]
                if wanted:
                    await asyncio.sleep(LOOK_SECONDS)

    def _note(self, code: str, written: WriteResult) -> None:
        self._statuses[code] = written.unit.status
        self.acknowledged.add((str(written.unit.id), written.unit.version))

    async def rows(self, statement: str, *arguments: object) -> list[dict[str, Any]]:
        async with self.database.reading() as connection:
            return [dict(row) for row in await connection.fetch(statement, *arguments)]

    async def value(self, statement: str, *arguments: object) -> Any:
        return await value(self.database, statement, *arguments)

    async def execute(self, statement: str) -> None:
        async with owning(self.database) as connection:
            await connection.execute(statement)

    async def until(self, statement: str, *arguments: object) -> None:
        """Until the database says so, and is there to say it."""
        await eventually(lambda: self._answer(statement, *arguments))

    async def _answer(self, statement: str, *arguments: object) -> bool:
        try:
            return bool(await self.value(statement, *arguments))
        except DatabaseUnavailable:
            return False

    async def settled(self) -> None:
        """Nothing is to be sent any more, nor on its way."""
        await self.until(f"select not ({UNSETTLED})")

    async def _history(self) -> DeliveryHistory:
        return DeliveryHistory(
            await self.rows(EVENTS), await self.rows(DELIVERIES), await self.rows(ATTEMPTS),
            await self.rows(IN_FLIGHT), list(self.journal.arrivals), self.secrets, frozenset(self.ordered),
            frozenset(self.acknowledged), self.journal.lag_seconds,
        )  # fmt: skip

    def aside(self) -> AbstractAsyncContextManager[asyncpg.Connection]:
        return connected(self.settings["HOLDFAST_DATABASE_URL"])

    async def assert_sound(self, *, foreseen: str = "nothing") -> DeliveryHistory:
        """Once everything is settled; no worker has anything to complain of but what is foreseen."""
        await self.settled()
        history = await self._history()
        assert faults_of(history, self.pace) == []
        complaints = [complaint for worker in self.workers for complaint in worker.complaints()]
        assert [complaint for complaint in complaints if foreseen not in complaint] == []
        return history


@asynccontextmanager
async def delivery_scene(database_url: str, folder: Path, pace: Pace) -> AsyncIterator[Scene]:
    settings = {
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "HOLDFAST_ALLOWED_NETWORKS": "127.0.0.0/8",
        **pace.settings(),
    }
    async with (
        Database(database_url) as database,
        open_endpoints(database, Settings.from_environment(settings)) as own,
        journalling() as journal,
    ):
        scene = Scene(database, own, journal, settings, pace, folder, await new_project(database))
        try:
            yield scene
        finally:
            for worker in scene.workers:
                worker.kill()
