"""Imports of spreadsheets: files, their rows and results, and the runs that check or store them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import count
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import msgspec

from holdfast.domain import imports as domain
from holdfast.domain.audit import Author
from holdfast.domain.cells import Cell, cell_text, media_text
from holdfast.domain.decision import Decision, Needs, UnitSnapshot
from holdfast.domain.errors import AnyMessage, Conflict, DatabaseUnavailable, DomainError, InvalidInput
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.domain.wire_format import camel_case
from holdfast.operations.units import OUTCOMES, Units, outcome_name
from holdfast.operations.write_path import NO_NEEDS, Outcome, RetriesExhausted, WriteResult
from holdfast.storage import imports
from holdfast.storage.database import Database
from holdfast.storage.imports import Result, pack, unpack
from holdfast.storage.units import UnitKey

__all__ = ["Finding", "ImportUnit", "Imports", "ParsedFile", "ParsedRow", "RowReader", "pack", "unpack"]

ROWS_A_PART = 1000
KEPT_FOR = timedelta(days=1)
KEPT_A_PERSON = 5
HEARTBEAT_SECONDS = 4.0
ROWS_A_TURN = 20
"""Other requests have their turn after so many."""

_PARTS_A_STATEMENT = 20
_LONGEST_TEXT = 300
_WRITTEN_FIELDS = tuple(field for field in domain.FIELDS if field not in (domain.CODE, domain.STATUS))
_FIELDS_BY_NAME = {camel_case(field): field for field in domain.FIELDS}

_log = logging.getLogger(__name__)


class ParsedFile(msgspec.Struct):
    """The result of the process that parses a file."""

    fault: AnyMessage = ""
    contents: domain.Contents | None = None
    parts: list[list[bytes]] = []
    """The packed rows of each sheet."""


class ImportUnit(NamedTuple):
    key: UnitKey
    values: Mapping[str, Any]
    """The fields in the domain's names; what the row does not name stays as it is."""
    status: Status | None
    author: Author
    needs: Needs = NO_NEEDS

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        return domain.import_row(snapshot, self.key[1], self.values, self.status, now)


class ParsedRow(NamedTuple):
    number: int
    code: str
    cells: list[Cell]
    command: ImportUnit | DomainError


RowReader = Callable[[UUID, str, domain.ColumnMapping, Author], Callable[[domain.Row], ParsedRow]]
"""For a project (its id and slug): parses rows in their order, and rejects what the bulk route would."""


class Reason(NamedTuple):
    field: str | None
    """None: the row as a whole."""
    text: str
    """The text of the cell."""
    message: AnyMessage


class Finding(NamedTuple):
    row: int
    code: str
    reasons: list[Reason]
    """Of a row that is rejected."""
    before: dict[str, Any]
    """The fields that change, as they are and as they will be; numbers as text."""
    after: dict[str, Any]
    cells: Sequence[Cell] = ()
    """Of a row that is rejected, as they stand in the file."""


def list_results(
    rows: Sequence[ParsedRow], outcomes: Sequence[Outcome], choice: domain.ColumnMapping, *, stored: bool
) -> list[Result]:
    """Of rows that were stored, keep only the rejected ones: the history has the others."""
    found: dict[str, list[Finding]] = {name: [] for name in OUTCOMES}
    counts = dict.fromkeys(OUTCOMES, 0)
    for row, outcome in zip(rows, outcomes, strict=True):
        name = outcome_name(outcome)
        counts[name] += 1
        if isinstance(outcome, DomainError):
            reasons = _reasons(row, outcome, choice)
            found[name].append(Finding(row.number, row.code, reasons, {}, {}, row.cells))
        elif name != "unchanged" and not stored:
            found[name].append(Finding(row.number, row.code, [], *_differences(outcome)))
    return [
        Result(name, counts[name], pack(found[name]) if found[name] else None)
        for name in OUTCOMES
        if counts[name]
    ]


def _reasons(row: ParsedRow, error: DomainError, choice: domain.ColumnMapping) -> list[Reason]:
    if isinstance(error, InvalidInput):
        return [
            _reason(row, choice, fault.pointer.strip("/").split("/")[0], fault.message)
            for fault in error.faults
        ]
    if isinstance(error, Conflict) and error.fields:
        return [_reason(row, choice, camel_case(field), error.message) for field in error.fields]
    return [Reason(None, "", error.message)]


def _reason(row: ParsedRow, choice: domain.ColumnMapping, name: str, message: AnyMessage) -> Reason:
    field = _FIELDS_BY_NAME.get(name)
    column = None if field is None else choice.column_of(field)
    text = "" if column is None else cell_text(row.cells[column])
    return Reason(field, text[:_LONGEST_TEXT], message)


def _differences(written: WriteResult) -> tuple[dict[str, Any], dict[str, Any]]:
    before, after = written.before, written.decision.unit
    was, is_now = _values(before) if before is not None else {}, _values(after)
    names = [name for name, value in is_now.items() if value != was.get(name)]
    names += [name for name in was if name not in names and was[name] != is_now.get(name)]
    return (
        {name: was[name] for name in names if name in was},
        {name: is_now[name] for name in names if name in is_now},
    )


def _values(unit: Unit) -> Mapping[str, Any]:
    """Return the fields that are set, in the order of the columns."""
    values = {name: _as_text(getattr(unit.fields, name)) for name in _WRITTEN_FIELDS}
    values[domain.STATUS] = unit.status.value
    return {name: value for name, value in values.items() if value is not None}


def _as_text(value: Any) -> Any:
    if isinstance(value, tuple):
        value = media_text(value) or None
    if isinstance(value, Decimal):
        return format(value, "f")
    return value[:_LONGEST_TEXT] if isinstance(value, str) else value


class RunReplaced(Exception):
    """Somebody began another run of this file, or it is gone: this one stops."""


class Run(NamedTuple):
    """One pass through the rows of a file, which only checks them or stores them.

    A run is a task of one process, which records its progress and a heartbeat in the database. When the
    process dies, the heartbeat stops, and another process may take over. A storing run goes on after the last
    recorded part; rows of the next two parts may have been stored already, and are found unchanged.
    """

    id: UUID
    file: domain.Import
    slug: str
    choice: domain.ColumnMapping
    first: int
    """The part with which it begins: those before it were stored by a run that this one takes over."""
    author: Author
    stores: bool


class Imports:
    """Files, kept for a day for the person who uploaded them, and the runs of this process.

    One run follows the other, since each takes what the bulk route takes.
    """

    def __init__(self, database: Database, units: Units, reader: RowReader) -> None:
        self._database = database
        self._units = units
        self._reader = reader
        self._one_at_a_time = asyncio.Semaphore()
        self._tasks: dict[UUID, tuple[Run, asyncio.Task[None]]] = {}

    async def add_file(self, slug: str, staff_id: UUID, file_name: str, parsed: ParsedFile) -> UUID:
        assert parsed.contents is not None
        project_id = await self._units.project_id(slug)
        import_id = uuid4()
        async with self._database.writing() as connection:
            await imports.delete_old(connection, KEPT_FOR, staff_id, KEPT_A_PERSON - 1)
            contents = pack(parsed.contents)
            await imports.insert(connection, import_id, project_id, staff_id, file_name, contents)
            for sheet, parts in enumerate(parsed.parts):
                for first in range(0, len(parts), _PARTS_A_STATEMENT):
                    some = parts[first : first + _PARTS_A_STATEMENT]
                    await imports.insert_parts(connection, import_id, sheet, first, some)
        return import_id

    async def find(self, slug: str, import_id: UUID, staff_id: UUID) -> domain.Import | None:
        """Return None also for a file of somebody else."""
        project_id = await self._units.project_id(slug)
        return await self._database.read(imports.find, import_id, project_id, staff_id)

    async def latest(self, slug: str, staff_id: UUID) -> list[domain.Import]:
        project_id = await self._units.project_id(slug)
        return await self._database.read(imports.latest, staff_id, project_id, KEPT_A_PERSON)

    async def counts(self, import_id: UUID, *, stored: bool) -> dict[str, int]:
        return await self._database.read(imports.counts, import_id, stored)

    async def findings(
        self, import_id: UUID, outcome: str, offset: int, limit: int, *, stored: bool
    ) -> list[Finding]:
        """Return findings in the order of the rows. They never change, so an offset is safe."""
        parts = await self._database.read(imports.findings, import_id, stored, outcome, offset, limit)
        if not parts:
            return []
        found = [finding for _, packed in parts for finding in unpack(list[Finding], packed)]
        start = offset - parts[0][0]
        return found[max(start, 0) : start + limit]

    async def start(
        self, slug: str, file: domain.Import, author: Author, choice: domain.ColumnMapping | None = None
    ) -> bool:
        """With a choice check the file, which stores nothing; without, store what was checked.

        Return False if a run is under way already, or if a file to store was not checked, or again since.
        """
        run_id, stores = uuid4(), choice is None
        async with self._database.writing() as connection:
            packed = await imports.begin(
                connection,
                file.id,
                domain.IMPORTING if stores else domain.CHECKING,
                run_id,
                None if stores else pack(choice),
                begun_from=("checked",) if stores else ("uploaded", "checked"),
                taken_over_from=(domain.IMPORTING,) if stores else (domain.CHECKING, domain.IMPORTING),
                last_run_id=file.run_id,
            )
            if packed is None:
                return False
            first = 0
            if stores:
                first = await imports.next_to_store(connection, file.id)
            else:
                await imports.delete_results(connection, file.id)
        chosen = unpack(domain.ColumnMapping, packed)
        run = Run(run_id, file, slug, chosen, first, author, stores)
        task = asyncio.create_task(self._run(run))
        self._tasks[run_id] = run, task
        task.add_done_callback(lambda _: self._tasks.pop(run_id, None))
        return True

    async def wait(self, import_id: UUID, seconds: float) -> None:
        """Wait a little, so that a small file is done when its page is shown."""
        tasks = [task for run, task in self._tasks.values() if run.file.id == import_id]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def close(self) -> None:
        """Stop the runs and record it; one that was cancelled before its start could not do so itself."""
        stopped = list(self._tasks.values())
        for _, task in stopped:
            task.cancel()
        for run, task in stopped:
            await asyncio.wait([task])
            await self._end(run, None)

    async def _run(self, run: Run) -> None:
        stage = None
        heartbeat = asyncio.create_task(self._send_heartbeats(run))
        parts = count(run.first)

        async def record(rows: Sequence[ParsedRow], outcomes: list[Outcome]) -> None:
            await self._record(run, next(parts), rows, outcomes)

        try:
            async with self._one_at_a_time:
                await self._units.write_all(self._parse_batches(run), record, store=run.stores)
            stage = "imported" if run.stores else "checked"
        except RunReplaced:
            pass
        except DatabaseUnavailable:
            _log.warning("an import was interrupted", extra={"fields": {"importId": run.file.id}})
        except Exception:  # noqa: BLE001 - the page shows that it stopped, the log why
            _log.exception("an import failed", extra={"fields": {"importId": run.file.id}})
        finally:
            heartbeat.cancel()
            await self._end(run, stage)

    async def _parse_batches(self, run: Run) -> AsyncIterator[list[ParsedRow]]:
        """Parse also the parts that were stored: a row is rejected if an earlier one has its code."""
        parse = self._reader(run.file.project_id, run.slug, run.choice, run.author)
        for number in range(run.file.contents.sheets[run.choice.sheet].parts):
            packed = await self._database.read(imports.part, run.file.id, run.choice.sheet, number)
            if packed is None:
                raise RunReplaced
            rows = []
            for row in unpack(list[domain.Row], packed):
                if row[0] > run.choice.heading_row:
                    rows.append(parse(row))
                    if len(rows) % ROWS_A_TURN == 0:
                        await asyncio.sleep(0)
            if number >= run.first:
                yield rows

    async def _record(self, run: Run, part: int, rows: Sequence[ParsedRow], outcomes: list[Outcome]) -> None:
        for outcome in outcomes:
            if isinstance(outcome, DatabaseUnavailable) and not isinstance(outcome, RetriesExhausted):
                raise outcome
        results = await asyncio.to_thread(list_results, rows, outcomes, run.choice, stored=run.stores)
        if results and not await self._database.write(
            imports.record, run.file.id, run.id, run.stores, part, results
        ):
            raise RunReplaced

    async def _send_heartbeats(self, run: Run) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            try:
                await self._database.write(imports.record_heartbeat, run.file.id, run.id)
            except DatabaseUnavailable:
                pass
            except Exception:  # noqa: BLE001 - the next may be stored
                _log.exception("a heartbeat failed", extra={"fields": {"importId": run.file.id}})

    async def _end(self, run: Run, stage: str | None) -> None:
        """Without a stage it stays where it is, and is no longer alive."""
        stage = stage or (domain.IMPORTING if run.stores else domain.CHECKING)
        with suppress(DatabaseUnavailable):
            await self._database.write(imports.end, run.file.id, run.id, stage)
