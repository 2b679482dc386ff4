"""Imported files of units, and the results of their rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from holdfast.storage.database import Connection

# A process that is alive says so every few seconds.
_ALIVE = "coalesce(beat_at > clock_timestamp() - interval '15 s', false)"
_COLUMNS = f"""
    id, project_id, staff_id, file_name, created_at, contents, choice, stage, run_id, {_ALIVE} as is_alive
"""

_INSERT = """
    insert into import_file (id, project_id, staff_id, file_name, created_at, contents, stage)
    values ($1, $2, $3, $4, clock_timestamp(), $5, 'uploaded')
"""
_INSERT_PARTS = """
    insert into import_part (import_id, sheet, part, rows)
    select $1, $2, $3 + place - 1, rows from unnest($4::bytea[]) with ordinality as sent (rows, place)
"""
_DROP_OLD = f"""
    delete from import_file where created_at < clock_timestamp() - $1::interval and not {_ALIVE}
"""
_DROP_BEYOND = f"""
    delete from import_file where not {_ALIVE} and id in (
        select id from import_file where staff_id = $1 order by created_at desc offset $2
    )
"""
_FIND = f"select {_COLUMNS} from import_file where id = $1 and project_id = $2 and staff_id = $3"
_LATEST = f"""
    select {_COLUMNS} from import_file where staff_id = $1 and project_id = $2
    order by created_at desc limit $3
"""
_PART = "select rows from import_part where import_id = $1 and sheet = $2 and part = $3"
_BEGIN = f"""
    update import_file
    set stage = $2, run_id = $3, choice = coalesce($4, choice), beat_at = clock_timestamp()
    where id = $1 and run_id is not distinct from $7
        and (stage = any($5) or (stage = any($6) and not {_ALIVE}))
    returning choice
"""
_FORGET_RESULTS = "delete from import_result where import_id = $1"
_NEXT_TO_STORE = """
    select coalesce(max(part) + 1, 0) from import_result where import_id = $1 and stored
"""
_BEAT = "update import_file set beat_at = clock_timestamp() where id = $1 and run_id = $2 returning id"
_RECORD = """
    with alive as (
        update import_file set beat_at = clock_timestamp() where id = $1 and run_id = $2 returning id
    )
    insert into import_result (import_id, stored, part, outcome, rows_counted, findings)
    select id, $3, $4, outcome, rows_counted, findings
    from alive, unnest($5::text[], $6::integer[], $7::bytea[]) as found (outcome, rows_counted, findings)
    returning import_id
"""
_END = """
    update import_file set stage = $3, beat_at = null
    where id = $1 and run_id = $2 and stage in ('checking', 'importing')
"""
_COUNTS = """
    select outcome, sum(rows_counted)::bigint from import_result
    where import_id = $1 and stored = $2 group by outcome
"""
# As many parts as hold the findings wanted; the others stay unread.
_FINDINGS = """
    select through - rows_counted, findings from (
        select part, findings, rows_counted, sum(rows_counted) over (order by part) as through
        from import_result where import_id = $1 and stored = $2 and outcome = $3
    ) as found
    where through > $4::bigint and through - rows_counted < $4::bigint + $5::bigint order by part
"""


class ImportFile(NamedTuple):
    id: UUID
    project_id: UUID
    staff_id: UUID
    file_name: str
    created_at: datetime
    contents: bytes
    choice: bytes | None
    stage: str
    run_id: UUID | None
    is_alive: bool


class Result(NamedTuple):
    """What came of the rows of one part that had the same outcome."""

    outcome: str
    rows: int
    findings: bytes | None


async def insert(
    connection: Connection,
    import_id: UUID,
    project_id: UUID,
    staff_id: UUID,
    file_name: str,
    contents: bytes,
) -> None:
    await connection.execute(_INSERT, import_id, project_id, staff_id, file_name, contents)


async def insert_parts(
    connection: Connection, import_id: UUID, sheet: int, first: int, parts: Sequence[bytes]
) -> None:
    await connection.execute(_INSERT_PARTS, import_id, sheet, first, parts)


async def drop_old(connection: Connection, age: timedelta, staff_id: UUID, kept: int) -> None:
    """Whoever uploads clears away: what is old, and what one person has beyond ``kept``."""
    await connection.execute(_DROP_OLD, age)
    await connection.execute(_DROP_BEYOND, staff_id, kept)


async def find(
    connection: Connection, import_id: UUID, project_id: UUID, staff_id: UUID
) -> ImportFile | None:
    row = await connection.fetchrow(_FIND, import_id, project_id, staff_id)
    return None if row is None else ImportFile(*row)


async def latest(connection: Connection, staff_id: UUID, project_id: UUID, limit: int) -> list[ImportFile]:
    return [ImportFile(*row) for row in await connection.fetch(_LATEST, staff_id, project_id, limit)]


async def part(connection: Connection, import_id: UUID, sheet: int, number: int) -> bytes | None:
    rows: bytes | None = await connection.fetchval(_PART, import_id, sheet, number)
    return rows


async def begin(
    connection: Connection,
    import_id: UUID,
    stage: str,
    run_id: UUID,
    choice: bytes | None,
    begun_from: Sequence[str],
    taken_over_from: Sequence[str],
    last_run_id: UUID | None,
) -> bytes | None:
    """What was chosen. None if it is at no stage that this may begin from, or at one that a living run is in,
    or another run has been there since."""
    chosen: bytes | None = await connection.fetchval(
        _BEGIN, import_id, stage, run_id, choice, begun_from, taken_over_from, last_run_id
    )
    return chosen


async def forget_results(connection: Connection, import_id: UUID) -> None:
    await connection.execute(_FORGET_RESULTS, import_id)


async def next_to_store(connection: Connection, import_id: UUID) -> int:
    """The first part of which nothing was recorded as stored."""
    number: int = await connection.fetchval(_NEXT_TO_STORE, import_id)
    return number


async def beat(connection: Connection, import_id: UUID, run_id: UUID) -> bool:
    """That the run is alive. False if it is not the run any more."""
    return await connection.fetchval(_BEAT, import_id, run_id) is not None


async def record(
    connection: Connection,
    import_id: UUID,
    run_id: UUID,
    stored: bool,
    number: int,
    results: Sequence[Result],
) -> bool:
    """What came of a part. False if it is not the run any more; nothing is recorded then."""
    columns = [list(column) for column in zip(*results, strict=True)]
    return await connection.fetchval(_RECORD, import_id, run_id, stored, number, *columns) is not None


async def end(connection: Connection, import_id: UUID, run_id: UUID, stage: str) -> None:
    await connection.execute(_END, import_id, run_id, stage)


async def counts(connection: Connection, import_id: UUID, stored: bool) -> dict[str, int]:
    return {row[0]: row[1] for row in await connection.fetch(_COUNTS, import_id, stored)}


async def findings(
    connection: Connection, import_id: UUID, stored: bool, outcome: str, offset: int, limit: int
) -> list[tuple[int, bytes]]:
    """The parts that hold them, each with how many findings stand before it."""
    rows = await connection.fetch(_FINDINGS, import_id, stored, outcome, offset, limit)
    return [(int(row[0]), row[1]) for row in rows]
