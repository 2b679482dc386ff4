"""Moves what was done within a minute into past weeks, so that plots have a history."""

from holdfast.operations.reports import sum_up
from holdfast.storage.database import Database
from tests.browser.office import Office
from tests.support.client import Project

_DAYS = 84
# All that happened to a unit moves by the same days, so that one thing still follows upon the other.
_AGO = f"make_interval(days => 1 + abs(hashtext(unit.code || 'past')) % {_DAYS - 14})"
_TIMES = ("created_at", "hold_expires_at", "reserved_until", "signed_at", "deposit_confirmed_at", "closed_at")
_STATEMENTS = (
    f"update unit set created_at = created_at - interval '{_DAYS} days' where project_id = $1",
    "delete from created_hour where project_id = $1",
    f"""
    update booking set {", ".join(f"{name} = booking.{name} - {_AGO}" for name in _TIMES)}
    from unit where unit.id = booking.unit_id and booking.project_id = $1 and booking.status = 'sold'
    """,
    "delete from event_hour where project_id = $1",
    f"""
    insert into event_hour (project_id, hour, previous_status, status, steps)
    select $1::uuid, date_trunc('hour', event.created_at - {_AGO}) as hour,
        event.previous_status, event.status, count(*)
    from event join unit on unit.id = event.unit_id
    where event.project_id = $1 group by hour, event.previous_status, event.status
    """,
)


def put_back(office: Office, project: Project) -> None:
    """Reading the feed gives events their positions; those that are summed already are not summed again."""
    assert office.http.get("/v1/integration/events", params={"limit": 1}).status_code == 200
    office.sql.run(_sum_up(office.sql.url))
    for statement in _STATEMENTS:
        office.sql.execute(statement, project.id)


async def _sum_up(url: str) -> None:
    async with Database(url) as database:
        await sum_up(database)
