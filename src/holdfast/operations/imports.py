"""Imports of spreadsheets: files, their rows and results, and the runs that check or store them."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, TypeVar
from uuid import UUID, uuid4

import msgspec

from holdfast.domain.audit import Author
from holdfast.domain.cells import Cell, cell_text, media_text
from holdfast.domain.decision import Decision, Needs, UnitSnapshot
from holdfast.domain.errors import Conflict, DatabaseUnavailable, DomainError, InvalidInput
from holdfast.domain.imports import CODE, FIELDS, STATUS, Choice, Contents, Row, import_row, rows_to_read
from holdfast.domain.message import AnyMessage
from holdfast.domain.spelling import camel_case
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.operations.units import OUTCOMES, Units, outcome_name, write_all
from holdfast.operations.write_path import NO_NEEDS, Outcome, RetriesExhausted, Written
from holdfast.storage import imports
from holdfast.storage.database import Database
from holdfast.storage.imports import ImportFile, Result
from holdfast.storage.units import UnitKey

ROWS_A_PART = 1000

_LEVEL = 3
Packed = TypeVar("Packed")


def pack(things: Any) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(things), _LEVEL)


def unpack(kind: type[Packed], packed: bytes) -> Packed:
    return msgspec.msgpack.decode(zlib.decompress(packed), type=kind)


def unpack_rows(packed: bytes) -> list[Row]:
    return unpack(list[Row], packed)


class Reply(msgspec.Struct):
    """What the process that reads a file tells of it."""

    fault: AnyMessage = ""
    contents: Contents | None = None
    parts: list[list[bytes]] = []
    """The packed rows of each sheet."""


# A row of a file, and the command that brings its unit in.


class ImportUnit(NamedTuple):
    key: UnitKey
    values: Mapping[str, Any]
    """What the row says, in the domain's names; what it does not name stays as it is."""
    status: Status | None
    author: Author

    @property
    def needs(self) -> Needs:
        return NO_NEEDS

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        return import_row(snapshot, self.key[1], self.values, self.status, now)


class RowRead(NamedTuple):
    number: int
    code: str
    cells: list[Cell]
    command: ImportUnit | DomainError


ReadRow = Callable[[Row], RowRead]
RowReader = Callable[[UUID, str, Choice, Author], ReadRow]
"""For a project (its id and slug): reads rows in their order, and refuses what the bulk route would."""


# What an import finds in its rows, as it is kept and shown.

_SHOWN = 300
_WRITTEN_FIELDS = tuple(field for field in FIELDS if field not in (CODE, STATUS))
_FIELD_NAMED = {camel_case(field): field for field in FIELDS}


class Reason(NamedTuple):
    field: str | None
    """None: the row as a whole."""
    text: str
    """What stands in the cell."""
    message: AnyMessage


class Finding(NamedTuple):
    row: int
    code: str
    reasons: list[Reason]
    """Why it is refused."""
    before: dict[str, Any]
    """What of the unit changes, as it is and as it will be; numbers as text."""
    after: dict[str, Any]


def results_of(
    rows: Sequence[RowRead], outcomes: Sequence[Outcome], choice: Choice, *, stored: bool
) -> list[Result]:
    """Of rows that were brought in, only the refused ones are told: the history has the others."""
    found: dict[str, list[Finding]] = {name: [] for name in OUTCOMES}
    counts = dict.fromkeys(OUTCOMES, 0)
    for row, outcome in zip(rows, outcomes, strict=True):
        name = outcome_name(outcome)
        counts[name] += 1
        if isinstance(outcome, DomainError):
            found[name].append(Finding(row.number, row.code, _reasons(row, outcome, choice), {}, {}))
        elif name != "unchanged" and not stored:
            found[name].append(Finding(row.number, row.code, [], *_differences(outcome)))
    return [
        Result(name, counts[name], pack(found[name]) if found[name] else None)
        for name in OUTCOMES
        if counts[name]
    ]


def _reasons(row: RowRead, refusal: DomainError, choice: Choice) -> list[Reason]:
    if isinstance(refusal, InvalidInput):
        return [
            _reason(row, choice, fault.pointer.strip("/").split("/")[0], fault.message)
            for fault in refusal.faults
        ]
    if isinstance(refusal, Conflict) and refusal.fields:
        return [_reason(row, choice, camel_case(field), refusal.message) for field in refusal.fields]
    return [Reason(None, "", refusal.message)]


def _reason(row: RowRead, choice: Choice, name: str, message: AnyMessage) -> Reason:
    field = _FIELD_NAMED.get(name)
    column = None if field is None else choice.column_of(field)
    text = "" if column is None else cell_text(row.cells[column])
    return Reason(field, text[:_SHOWN], message)


def _differences(written: Written) -> tuple[dict[str, Any], dict[str, Any]]:
    before, after = written.before, written.decision.unit
    was, is_now = _values(before) if before is not None else {}, _values(after)
    names = [name for name, value in is_now.items() if value != was.get(name)]
    names += [name for name in was if name not in names and was[name] != is_now.get(name)]
    return (
        {name: was[name] for name in names if name in was},
        {name: is_now[name] for name in names if name in is_now},
    )


def _values(unit: Unit) -> Mapping[str, Any]:
    """What is set, in the order of the columns."""
    values = {name: _shown(getattr(unit.fields, name)) for name in _WRITTEN_FIELDS}
    values[STATUS] = unit.status.value
    return {name: value for name, value in values.items() if value is not None}


def _shown(value: Any) -> Any:
    if isinstance(value, tuple):
        value = media_text(value) or None
    if isinstance(value, Decimal):
        return format(value, "f")
    return value[:_SHOWN] if isinstance(value, str) else value


# Files of units: kept for a day, for the person who brought them.

KEPT_FOR = timedelta(days=1)
KEPT_A_PERSON = 5
_PARTS_A_STATEMENT = 20

CHECKING, IMPORTING = "checking", "importing"


class Import(NamedTuple):
    """A file, and how far it has come."""

    id: UUID
    project_id: UUID
    file_name: str
    created_at: datetime
    contents: Contents
    choice: Choice | None
    stage: str
    """``uploaded``, ``checking``, ``checked``, ``importing`` or ``imported``."""
    run_id: UUID | None
    """Of the last run."""
    is_alive: bool

    @property
    def is_running(self) -> bool:
        return self.stage in (CHECKING, IMPORTING) and self.is_alive

    @property
    def is_interrupted(self) -> bool:
        """The process that was at work on it is no more."""
        return self.stage in (CHECKING, IMPORTING) and not self.is_alive

    @property
    def rows(self) -> int:
        if self.choice is None:
            return 0
        return rows_to_read(self.contents.sheets[self.choice.sheet], self.choice.heading_row)


class ImportFiles:
    def __init__(self, database: Database, units: Units) -> None:
        self._database = database
        self._units = units

    async def keep(self, slug: str, staff_id: UUID, file_name: str, read: Reply) -> UUID:
        assert read.contents is not None
        project_id = await self._units.project_id(slug)
        import_id = uuid4()
        async with self._database.writing() as connection:
            await imports.drop_old(connection, KEPT_FOR, staff_id, KEPT_A_PERSON - 1)
            contents = pack(read.contents)
            await imports.insert(connection, import_id, project_id, staff_id, file_name, contents)
            for sheet, parts in enumerate(read.parts):
                for first in range(0, len(parts), _PARTS_A_STATEMENT):
                    some = parts[first : first + _PARTS_A_STATEMENT]
                    await imports.insert_parts(connection, import_id, sheet, first, some)
        return import_id

    async def find(self, slug: str, import_id: UUID, staff_id: UUID) -> Import | None:
        """None also for a file of somebody else."""
        project_id = await self._units.project_id(slug)
        async with self._database.reading() as connection:
            found = await imports.find(connection, import_id, project_id, staff_id)
        return None if found is None else _import(found)

    async def latest(self, slug: str, staff_id: UUID) -> list[Import]:
        project_id = await self._units.project_id(slug)
        async with self._database.reading() as connection:
            found = await imports.latest(connection, staff_id, project_id, KEPT_A_PERSON)
        return [_import(file) for file in found]

    async def counts(self, import_id: UUID, *, stored: bool) -> dict[str, int]:
        async with self._database.reading() as connection:
            return await imports.counts(connection, import_id, stored)

    async def findings(
        self, import_id: UUID, outcome: str, offset: int, limit: int, *, stored: bool
    ) -> list[Finding]:
        """In the order of the rows. What was found stays as it is, so places in it can be counted."""
        async with self._database.reading() as connection:
            parts = await imports.findings(connection, import_id, stored, outcome, offset, limit)
        if not parts:
            return []
        found = [finding for _, packed in parts for finding in unpack(list[Finding], packed)]
        start = offset - parts[0][0]
        return found[max(start, 0) : start + limit]


def _import(file: ImportFile) -> Import:
    return Import(
        file.id,
        file.project_id,
        file.file_name,
        file.created_at,
        unpack(Contents, file.contents),
        None if file.choice is None else unpack(Choice, file.choice),
        file.stage,
        file.run_id,
        file.is_alive,
    )


# Runs through the rows of a file: one that only checks, and one that stores.
#
# A run is a task of one process, which records its progress and a heartbeat in the database. When the process
# dies, the heartbeat stops, and another process may take over. A storing run goes on after the last recorded
# part; rows of the next two parts may have been stored already, and are found unchanged.

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

    def __init__(self, database: Database, units: Units, reader: RowReader) -> None:
        self._database = database
        self._units = units
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
        except DatabaseUnavailable:
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
            await write_all(self._units, self._batches(run), recording.note, store=run.stores)
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
                async with self._database.writing_autocommit() as connection:
                    await imports.beat(connection, run.import_id, run.run_id)
            except DatabaseUnavailable:
                pass
            except Exception:  # noqa: BLE001 - the next may be stored
                _log.exception("a sign of life failed", extra={"fields": {"importId": run.import_id}})

    async def _end(self, run: Run, stage: str | None) -> None:
        """Without a stage it stays where it is, and shows no sign of life any more."""
        left_at = stage or (IMPORTING if run.stores else CHECKING)
        with suppress(DatabaseUnavailable):
            async with self._database.writing_autocommit() as connection:
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
            if isinstance(outcome, DatabaseUnavailable) and not isinstance(outcome, RetriesExhausted):
                raise outcome
        results = await asyncio.to_thread(results_of, rows, outcomes, run.choice, stored=run.stores)
        number, self._part = self._part, self._part + 1
        if not results:
            return
        async with self._database.writing_autocommit() as connection:
            ours = await imports.record(connection, run.import_id, run.run_id, run.stores, number, results)
        if not ours:
            raise RunReplaced
