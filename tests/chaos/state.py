"""The final state of a run: all that the last primary has stored, read in one snapshot."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import asyncpg

from tests.support import exact_json
from tests.support.delivery_scene import ATTEMPTS, DELIVERIES, IN_FLIGHT
from tests.support.unit_history import History, Row, rows_from

_QUERIES = {
    "units": "select unit.*, project.slug from unit join project on project.id = unit.project_id",
    "events": "select * from event order by position",
    "audit_entries": "select * from audit_entry order by id",
    "bookings": "select * from booking order by number",
    "deliveries": DELIVERIES,
    "attempts": ATTEMPTS,
    "in_flight": IN_FLIGHT,
    "endpoints": """
        select id, url, description, events, project_ids, ordered, paused, created_at, updated_at, removed_at
        from endpoint
    """,
}
_SEQUENCES = """
    select jsonb_build_object(
        'booking_number', (select last_value from booking_number),
        'claim_token', (select last_value from claim_token),
        'unit_ref_number', (select last_value from unit_ref_number),
        'last_position', (select last_position from event_feed)
    )
"""


@dataclass
class FinalState:
    """Rows by the names of their columns; numbers exact, times as on the wire, of attempts in seconds."""

    units: list[Row]
    """Each with the ``slug`` of its project."""
    events: list[Row]
    audit_entries: list[Row]
    bookings: list[Row]
    deliveries: list[Row]
    """Pending and ended ones."""
    attempts: list[Row]
    in_flight: list[Row]
    endpoints: list[Row]
    sequences: dict[str, int]
    """The last values that were given out, and the last position of the feed."""
    secrets: dict[str, str] = field(default_factory=dict)
    """The signing secrets by the ids of their endpoints."""

    def histories(self) -> list[History]:
        """Return what there is of each unit, as `read_histories` does."""
        events = _grouped(self.events, "unit_id")
        entries = _grouped(self.audit_entries, "subject_id")
        bookings = _grouped(self.bookings, "unit_id")
        return [
            History(
                unit,
                sorted(events[unit["id"]], key=itemgetter("unit_version", "created_at")),
                sorted(entries[unit["id"]], key=itemgetter("id")),
                bookings[unit["id"]],
            )
            for unit in self.units
        ]

    def save(self, path: Path) -> None:
        path.write_text(exact_json.write(vars(self)), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> Self:
        return cls(**exact_json.read(path.read_text(encoding="utf-8")))


async def read_state(url: str, secrets: Mapping[str, str]) -> FinalState:
    """``secrets``: the signing secrets by the ids of their endpoints; the database has them sealed only."""
    connection = await asyncpg.connect(url)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            await connection.execute("set local time zone 'UTC'")
            rows: dict[str, Any] = {}
            for name, query in _QUERIES.items():
                as_json = f"select coalesce(jsonb_agg(to_jsonb(found)), '[]') from ({query}) as found"
                rows[name] = rows_from(await connection.fetchval(as_json))
            sequences = rows_from(await connection.fetchval(_SEQUENCES))
    finally:
        await connection.close()
    return FinalState(**rows, sequences=sequences, secrets=dict(secrets))


def _grouped(rows: list[Row], column: str) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        groups[row[column]].append(row)
    return groups
