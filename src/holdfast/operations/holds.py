"""Expiry of holds and reservations."""

from __future__ import annotations

import logging
from time import monotonic
from uuid import UUID

from holdfast.domain.errors import DomainError
from holdfast.domain.holds import DueUnit, expire_due_unit
from holdfast.observability.metrics import EXPIRED
from holdfast.operations.events import with_payload
from holdfast.storage import holds
from holdfast.storage.database import Database, TransactionConflict

TRIED_AGAIN_SECONDS = 60.0
MOST_FAILED = 1000  # If more fail, the fault is not in single units.

_log = logging.getLogger(__name__)


async def expire_due_holds(database: Database, at_most: int, failed: dict[UUID, float] | None = None) -> int:
    """Expire holds and reservations of so many units. Those that somebody has locked are skipped.

    If they fail together, each half is tried alone. ``failed``: those that failed alone, and until when.
    """
    failed, due = {} if failed is None else failed, list[DueUnit]()
    try:
        async with database.writing() as connection:
            due = await holds.lock_due_units(connection, at_most, list(failed))
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
    except Exception as failure:
        # When the database is away, no unit is at fault.
        if isinstance(failure, DomainError) or not due or len(failed) >= MOST_FAILED:
            raise
        if half := len(due) // 2:
            return sum([await expire_due_holds(database, part, failed) for part in (half, len(due) - half)])
        failed[due[0].id] = monotonic() + TRIED_AGAIN_SECONDS
        fields = {"unitId": due[0].id, "unitCode": due[0].code, "projectSlug": due[0].project_slug}
        message = "a hold or reservation is over and its unit could not be released; it is tried again later"
        _log.error(message, exc_info=failure, extra={"fields": fields})
        return 1
    if deliveries:
        database.notify_workers()
    EXPIRED.inc(len(due))
    return len(due)
