"""Puts a unit into the states that only buyers and staff bring about.

Each step is what the real change writes to the unit's row: the version is one more, the time
of the change is the database's clock in whole milliseconds, and never before the last change.
"""

from datetime import datetime

from tests.support.client import Unit
from tests.support.sql import Sql

NEXT_MOMENT = """
    greatest(date_trunc('milliseconds', clock_timestamp()), unit.updated_at + interval '1 millisecond')
"""
CHANGE = f"""
    update unit
    set status = $3, archived = $4, version = unit.version + 1,
        updated_at = {NEXT_MOMENT},
        hold_expires_at = {NEXT_MOMENT} + $5::float8 * interval '1 second',
        reserved_until = {NEXT_MOMENT} + $6::float8 * interval '1 second'
    from project
    where project.id = unit.project_id and project.slug = $1 and unit.code = $2
    returning unit.id
"""
WAIT_FOR_THE_END = """
    select unit.hold_expires_at,
        pg_sleep(extract(epoch from unit.hold_expires_at - clock_timestamp()) + 0.001)
    from unit join project on project.id = unit.project_id
    where project.slug = $1 and unit.code = $2
"""
RELEASE = """
    update unit
    set status = 'available', version = unit.version + 1,
        updated_at = unit.hold_expires_at, hold_expires_at = null
    from project
    where project.id = unit.project_id and project.slug = $1 and unit.code = $2
    returning unit.id
"""
VERSION = """
    select unit.version from unit join project on project.id = unit.project_id
    where project.slug = $1 and unit.code = $2
"""


def hold(sql: Sql, unit: Unit, *, expires_in: float = 300) -> None:
    _change(sql, unit, "held", hold_seconds=expires_in)


def reserve(sql: Sql, unit: Unit, *, days: float = 14) -> None:
    _change(sql, unit, "reserved", reserved_seconds=days * 86_400)


def sell(sql: Sql, unit: Unit) -> None:
    _change(sql, unit, "sold")


def archive(sql: Sql, unit: Unit) -> None:
    _change(sql, unit, "unavailable", archived=True)


def bring_to(sql: Sql, unit: Unit, status: str) -> None:
    """Any of the three locked statuses, by name."""
    {"held": hold, "reserved": reserve, "sold": sell}[status](sql, unit)


def hold_and_let_lapse(sql: Sql, unit: Unit) -> datetime:
    """A hold that is over by the database's clock, and that nobody has released; its end."""
    hold(sql, unit, expires_in=0.02)
    expiry: datetime = sql.value(WAIT_FOR_THE_END, unit.project.slug, unit.code)
    return expiry


def release_as_the_clock_does(sql: Sql, unit: Unit) -> None:
    assert sql.value(RELEASE, unit.project.slug, unit.code) is not None


def version(sql: Sql, unit: Unit) -> int:
    return int(sql.value(VERSION, unit.project.slug, unit.code))


def _change(
    sql: Sql,
    unit: Unit,
    status: str,
    *,
    archived: bool = False,
    hold_seconds: float | None = None,
    reserved_seconds: float | None = None,
) -> None:
    arguments = (unit.project.slug, unit.code, status, archived, hold_seconds, reserved_seconds)
    assert sql.value(CHANGE, *arguments) is not None, "there is no such unit"
