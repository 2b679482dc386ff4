"""Expiry of holds and reservations."""

from __future__ import annotations

from holdfast.domain.holds import expire_due_unit
from holdfast.observability.metrics import EXPIRED
from holdfast.operations.events import with_payload
from holdfast.storage import holds
from holdfast.storage.database import Database, TransactionConflict


async def expire_due_holds(database: Database, at_most: int) -> int:
    """Expire holds and reservations of so many units. Those that somebody has locked are skipped."""
    try:
        async with database.writing() as connection:
            due = await holds.lock_due_units(connection, at_most)
            if not due:
                return 0
            claims = await holds.load_claims(connection, [unit.id for unit in due])
            ended = []
            for unit in due:
                expired = expire_due_unit(unit, claims.get(unit.id))
                ended.append(expired._replace(event=with_payload(expired.event, unit.project_slug)))
            deliveries = await holds.store_expired(connection, ended)
    except TransactionConflict:
        return 0
    if deliveries:
        database.notify_workers()
    EXPIRED.inc(len(due))
    return len(due)
