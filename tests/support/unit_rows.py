"""The rows of units and bookings, whatever readers see of them."""

from datetime import datetime

from tests.support.client import Unit
from tests.support.sql import Sql

END_NOW = """
    with claimed as (
        select unit.id, reference, unit.status = 'held' as is_hold, greatest(
            date_trunc('milliseconds', statement_timestamp()), max(unit.updated_at) over () + interval '1 ms'
        ) as now
        from unit join booking on booking.unit_id = unit.id where reference = any($1)
    ), moved as (
        update booking set
            hold_expires_at = case when is_hold then now else hold_expires_at end,
            reserved_until = case when is_hold then reserved_until else now end
        from claimed where booking.reference = claimed.reference
    )
    update unit set
        hold_expires_at = case when is_hold then now end,
        reserved_until = case when not is_hold then now end
    from claimed where unit.id = claimed.id returning now
"""
# By the database's clock, which is the one that counts.
WAIT = "select pg_sleep(greatest(0, extract(epoch from $1::timestamptz - clock_timestamp())) + 0.001)"


def end_now(sql: Sql, reference: str) -> datetime:
    """Moves the end of a hold or reservation to this moment. Somebody may release the unit, or nobody yet."""
    now: datetime = sql.value(END_NOW, [reference])
    sql.value(WAIT, now)
    return now


def stored_version(sql: Sql, unit: Unit) -> int:
    return int(sql.value("select version from unit where id = $1", unit.read()["id"]))


def stored_status(sql: Sql, unit: Unit) -> str:
    return str(sql.value("select status from unit where id = $1", unit.read()["id"]))
