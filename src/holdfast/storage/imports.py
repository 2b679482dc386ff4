"""Imported files of units, and the results of their rows."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import asyncpg
import msgspec

from holdfast.domain.imports import ColumnMapping, Contents, Import
from holdfast.storage.database import Connection

_COMPRESSION_LEVEL = 3

# A run records a heartbeat every few seconds.
_ALIVE = "coalesce(beat_at > clock_timestamp() - interval '15 s', false)"
_COLUMNS = f"id, project_id, file_name, created_at, contents, choice, stage, run_id, {_ALIVE} as is_alive"

_INSERT = """
    insert into import_file (id, project_id, staff_id, file_name, created_at, contents, stage)
    values ($1, $2, $3, $4, clock_timestamp(), $5, 'uploaded')
"""
_INSERT_PARTS = """
    insert into import_part (import_id, sheet, part, rows)
    select $1, $2, $3 + place - 1, rows from unnest($4::bytea[]) with ordinality as sent (rows, place)
"""
_DELETE_OLD = f"delete from import_file where created_at < clock_timestamp() - $1::interval and not {_ALIVE}"
_DELETE_BEYOND = f"""
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
_NEXT_TO_STORE = "select coalesce(max(part) + 1, 0) from import_result where import_id = $1 and stored"
_RECORD_HEARTBEAT = """
    update import_file set beat_at = clock_timestamp() where id = $1 and run_id = $2 returning id
"""
_RECORD = f"""
    with alive as ({_RECORD_HEARTBEAT})
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


Packed = TypeVar("Packed")


def pack(value: Any) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(value), _COMPRESSION_LEVEL)


def unpack(kind: type[Packed], packed: bytes) -> Packed:
    return msgspec.msgpack.decode(zlib.decompress(packed), type=kind)


class Result(NamedTuple):
    """The rows of one part that had the same outcome."""

    outcome: str
    rows: int
    findings: bytes | None


async def insert(
    connection: Connection, import_id: UUID, project_id: UUID, staff_id: UUID, file_name: str, contents: bytes
) -> None:
    await connection.execute(_INSERT, import_id, project_id, staff_id, file_name, contents)


async def insert_parts(
    connection: Connection, import_id: UUID, sheet: int, first: int, parts: Sequence[bytes]
) -> None:
    await connection.execute(_INSERT_PARTS, import_id, sheet, first, parts)


async def delete_old(connection: Connection, age: timedelta, staff_id: UUID, kept: int) -> None:
    """Delete old files, and those that a member of staff has beyond ``kept``; every upload does so."""
    await connection.execute(_DELETE_OLD, age)
    await connection.execute(_DELETE_BEYOND, staff_id, kept)


async def find(connection: Connection, import_id: UUID, project_id: UUID, staff_id: UUID) -> Import | None:
    row = await connection.fetchrow(_FIND, import_id, project_id, staff_id)
    return None if row is None else _import(row)


async def latest(connection: Connection, staff_id: UUID, project_id: UUID, limit: int) -> list[Import]:
    return [_import(row) for row in await connection.fetch(_LATEST, staff_id, project_id, limit)]


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
    """Return what was chosen. None if this may not begin at the present stage, if a live run is at it, or if
    another run has begun since ``last_run_id``."""
    chosen: bytes | None = await connection.fetchval(
        _BEGIN, import_id, stage, run_id, choice, begun_from, taken_over_from, last_run_id
    )
    return chosen


async def delete_results(connection: Connection, import_id: UUID) -> None:
    await connection.execute("delete from import_result where import_id = $1", import_id)


async def next_to_store(connection: Connection, import_id: UUID) -> int:
    """Return the first part without a record that it was stored."""
    return int(await connection.fetchval(_NEXT_TO_STORE, import_id))


async def record_heartbeat(connection: Connection, import_id: UUID, run_id: UUID) -> bool:
    """Return whether this is still the run of the import."""
    return await connection.fetchval(_RECORD_HEARTBEAT, import_id, run_id) is not None


async def record(
    connection: Connection,
    import_id: UUID,
    run_id: UUID,
    stored: bool,
    number: int,
    results: Sequence[Result],
) -> bool:
    """Record the results of a part. False, and nothing is recorded, if another run has replaced this one."""
    columns = [list(column) for column in zip(*results, strict=True)]
    return await connection.fetchval(_RECORD, import_id, run_id, stored, number, *columns) is not None


async def end(connection: Connection, import_id: UUID, run_id: UUID, stage: str) -> None:
    await connection.execute(_END, import_id, run_id, stage)


async def counts(connection: Connection, import_id: UUID, stored: bool) -> dict[str, int]:
    return {row[0]: row[1] for row in await connection.fetch(_COUNTS, import_id, stored)}


async def findings(
    connection: Connection, import_id: UUID, stored: bool, outcome: str, offset: int, limit: int
) -> list[tuple[int, bytes]]:
    """Return the parts that hold them, each with the number of findings before it."""
    rows = await connection.fetch(_FINDINGS, import_id, stored, outcome, offset, limit)
    return [(int(row[0]), row[1]) for row in rows]


def _import(row: asyncpg.Record) -> Import:
    choice = None if row["choice"] is None else unpack(ColumnMapping, row["choice"])
    return Import(**dict(row) | {"contents": unpack(Contents, row["contents"]), "choice": choice})
