"""All that the database knows of a unit, read in one snapshot."""

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from tests.support.sql import Sql

Row = dict[str, Any]

# One statement, so that the four belong together even while somebody writes.
_READ = """
    select
        to_jsonb(unit) as unit,
        (select coalesce(jsonb_agg(to_jsonb(event) order by event.unit_version, event.created_at), '[]')
            from event where event.unit_id = unit.id) as events,
        (select coalesce(jsonb_agg(to_jsonb(audit_entry) order by audit_entry.id), '[]')
            from audit_entry where audit_entry.subject_id = unit.id) as entries,
        (select coalesce(jsonb_agg(to_jsonb(booking) order by booking.number), '[]')
            from booking where booking.unit_id = unit.id) as bookings
    from unit join project on project.id = unit.project_id
    where project.slug = $1 order by unit.code
"""


@dataclass
class History:
    """Rows by the names of their columns; numbers exact, times as on the wire."""

    unit: Row
    events: list[Row]
    entries: list[Row]
    bookings: list[Row]


def read_histories(sql: Sql, slug: str) -> list[History]:
    sql.execute("set time zone 'UTC'")
    rows = sql.rows(_READ, slug)
    return [
        History(*(rows_from(row[name]) for name in ("unit", "events", "entries", "bookings"))) for row in rows
    ]


def rows_from(text: str) -> Any:
    """Numbers exact, times as on the wire."""
    return json.loads(text, parse_float=Decimal, object_hook=_with_wire_times)


def _with_wire_times(row: Row) -> Row:
    return {name: time_text(value) if _is_time(name, value) else value for name, value in row.items()}


def _is_time(name: str, value: object) -> bool:
    return isinstance(value, str) and (name == "at" or name.endswith(("_at", "_until")))


def time_text(value: str | datetime) -> str:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
