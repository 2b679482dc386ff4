"""Runs through the rows of a file: one that only checks, and one that stores.

A run is a task of one process, and says in the database how far it is. A process that dies leaves it without
a sign of life; then it may be taken over. One that stores goes on after the last part that was recorded: rows
of the next two may have been stored already, and are found unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID, uuid4

from holdfast.domain.audit import Author
from holdfast.domain.errors import DatabaseAway
from holdfast.domain.imports import Choice
from holdfast.operations.importing.commands import RowRead, RowReader
from holdfast.operations.importing.files import CHECKING, IMPORTING, Import
from holdfast.operations.importing.findings import results_of
from holdfast.operations.importing.packing import pack, unpack, unpack_rows
from holdfast.operations.inventory import Inventory
from holdfast.operations.many_units import write_all
from holdfast.operations.write_path import Outcome, StillOvertaken
from holdfast.storage import imports
from holdfast.storage.database import Database

BEAT_SECONDS = 4.0
ROWS_A_TURN = 20
"""Other requests have their turn after so many."""

_log = logging.getLogger(__name__)


class RunReplaced(Exception):
    """Somebody began another run of this file, or it is gone: this one stops."""


class Run(NamedTuple):
    import_id: UUID
    run_id: UUID
    project_id: UUID
    slug: str
    choice: Choice
    parts: int
    first: int
    """The part with which it begins: those before it were stored by a run that this one takes over."""
    author: Author
    stores: bool


class ImportRuns:
    """Those of this process, one after the other: each takes what the bulk route takes."""

    def __init__(self, database: Database, inventory: Inventory, reader: RowReader) -> None:
        self._database = database
        self._inventory = inventory
        self._reader = reader
        self._turn = asyncio.Semaphore()
        self._tasks: dict[UUID, tuple[Run, asyncio.Task[None]]] = {}

    async def check(self, slug: str, file: Import, choice: Choice, author: Author) -> bool:
        """A dry run: everything is decided, and nothing stored. False if a run is under way already."""
        return await self._begin(slug, file, choice, author)

    async def store(self, slug: str, file: Import, author: Author) -> bool:
        """What was checked. False if it was not, was checked again since, or is being stored already."""
        return await self._begin(slug, file, None, author)

    async def settle(self, import_id: UUID, seconds: float) -> None:
        """Waits a little, so that a small file is done when its page is shown."""
        tasks = [task for run, task in self._tasks.values() if run.import_id == import_id]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """What is under way is left, and says so; one that was cancelled before its start could not."""
        left = list(self._tasks.values())
        for _, task in left:
            task.cancel()
        for run, task in left:
            await asyncio.wait([task])
            await self._end(run, None)

    async def _begin(self, slug: str, file: Import, choice: Choice | None, author: Author) -> bool:
        """With a choice it is a check."""
        run_id, stores = uuid4(), choice is None
        async with self._database.writing() as connection:
            packed = await imports.begin(
                connection,
                file.id,
                IMPORTING if stores else CHECKING,
                run_id,
                None if stores else pack(choice),
                begun_from=("checked",) if stores else ("uploaded", "checked"),
                taken_over_from=(IMPORTING,) if stores else (CHECKING, IMPORTING),
                last_run_id=file.run_id,
            )
            if packed is None:
                return False
            first = 0
            if stores:
                first = await imports.next_to_store(connection, file.id)
            else:
                await imports.forget_results(connection, file.id)
        chosen = unpack(Choice, packed)
        parts = file.contents.sheets[chosen.sheet].parts
        run = Run(file.id, run_id, file.project_id, slug, chosen, parts, first, author, stores)
        task = asyncio.create_task(self._watched(run))
        self._tasks[run_id] = run, task
        task.add_done_callback(lambda _: self._tasks.pop(run_id, None))
        return True

    async def _watched(self, run: Run) -> None:
        """Whatever becomes of it, the file says so."""
        stage = None
        beating = asyncio.create_task(self._beat(run))
        try:
            async with self._turn:
                await self._through(run)
            stage = "imported" if run.stores else "checked"
        except RunReplaced:
            pass
        except DatabaseAway:
            _log.warning("an import was interrupted", extra={"fields": {"importId": run.import_id}})
        except Exception:  # noqa: BLE001 - the file tells that it stopped, the log why
            _log.exception("an import failed", extra={"fields": {"importId": run.import_id}})
        finally:
            beating.cancel()
            await self._end(run, stage)

    async def _through(self, run: Run) -> None:
        """Failures come one by one, not as the group that the transactions are in."""
        recording = _Recording(self._database, run)
        try:
            await write_all(self._inventory, self._batches(run), recording.note, store=run.stores)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _batches(self, run: Run) -> AsyncIterator[list[RowRead]]:
        """Parts that were stored are read too: a row is refused if an earlier one has its code."""
        read = self._reader(run.project_id, run.slug, run.choice, run.author)
        for number in range(run.parts):
            async with self._database.reading() as connection:
                packed = await imports.part(connection, run.import_id, run.choice.sheet, number)
            if packed is None:
                raise RunReplaced
            rows = []
            for row in unpack_rows(packed):
                if row[0] > run.choice.heading_row:
                    rows.append(read(row))
                    if len(rows) % ROWS_A_TURN == 0:
                        await asyncio.sleep(0)
            if number >= run.first:
                yield rows

    async def _beat(self, run: Run) -> None:
        """Whatever fails: a run that is under way is not to seem dead."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                async with self._database.writing_at_once() as connection:
                    await imports.beat(connection, run.import_id, run.run_id)
            except DatabaseAway:
                pass
            except Exception:  # noqa: BLE001 - the next may be stored
                _log.exception("a sign of life failed", extra={"fields": {"importId": run.import_id}})

    async def _end(self, run: Run, stage: str | None) -> None:
        """Without a stage it stays where it is, and shows no sign of life any more."""
        left_at = stage or (IMPORTING if run.stores else CHECKING)
        with suppress(DatabaseAway):
            async with self._database.writing_at_once() as connection:
                await imports.end(connection, run.import_id, run.run_id, left_at)


class _Recording:
    """What came of each part, in their order."""

    def __init__(self, database: Database, run: Run) -> None:
        self._database = database
        self._run = run
        self._part = run.first

    async def note(self, rows: Sequence[RowRead], outcomes: list[Outcome]) -> None:
        run = self._run
        for outcome in outcomes:
            if isinstance(outcome, DatabaseAway) and not isinstance(outcome, StillOvertaken):
                raise outcome
        results = await asyncio.to_thread(results_of, rows, outcomes, run.choice, stored=run.stores)
        number, self._part = self._part, self._part + 1
        if not results:
            return
        async with self._database.writing_at_once() as connection:
            ours = await imports.record(connection, run.import_id, run.run_id, run.stores, number, results)
        if not ours:
            raise RunReplaced
