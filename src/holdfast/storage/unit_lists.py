"""Pages of units. Expired holds are shown as the expiry will write them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, as_seen
from holdfast.storage.database import Connection
from holdfast.storage.units import READ_COLUMNS, unit_from

# The same rule as domain.unit.as_seen, for filters; a test compares the two.
_ENDS_AT = "coalesce(hold_expires_at, reserved_until)"
_EXPIRED = f"{_ENDS_AT} <= statement_timestamp()"
_NOT_EXPIRED = f"{_ENDS_AT} > statement_timestamp()"

_WHERE_STATUS = {
    None: ("true",),
    Status.AVAILABLE: (
        "status = 'available'",
        f"status = 'held' and {_EXPIRED}",
        f"status = 'reserved' and {_EXPIRED}",
    ),
    Status.HELD: (f"status = 'held' and {_NOT_EXPIRED}",),
    Status.RESERVED: (f"status = 'reserved' and {_NOT_EXPIRED}",),
    Status.SOLD: ("status = 'sold'",),
    Status.UNAVAILABLE: ("status = 'unavailable'",),
}

_SINCE = f"""(
    (updated_hour >= date_trunc('hour', $4::timestamptz at time zone 'UTC') and updated_at >= $4)
    or (status in ('held', 'reserved') and {_EXPIRED}
        and greatest({_ENDS_AT}, updated_at + interval '1 ms') >= $4)
)"""

# A status filter is one index scan for each way to have that status, merged in the order of codes.
_BRANCH = """(
    select * from unit
    where project_id = $1 and code > $2 and {status} and {condition}
    order by code limit $3
)"""
_PAGE = "select statement_timestamp(), {columns} from ({branches}) as unit order by code limit $3"

_MISSING_CODES = """
    select code from unit where project_id = $1
    except select unnest($2::text[])
    order by code
"""


_OFFERED = "status <> 'unavailable'"


def _page_statement(status: Status | None, condition: str) -> str:
    branches = " union all ".join(
        _BRANCH.format(status=where, condition=condition) for where in _WHERE_STATUS[status]
    )
    return _PAGE.format(columns=READ_COLUMNS, branches=branches)


_PAGES = {
    (status, since): _page_statement(status, _SINCE if since else "true")
    for status in _WHERE_STATUS
    for since in (True, False)
}
_OFFERS = {status: _page_statement(status, _OFFERED) for status in _WHERE_STATUS}


async def page(
    connection: Connection,
    project_id: UUID,
    after_code: str,
    limit: int,
    status: Status | None,
    updated_since: datetime | None,
) -> list[Unit]:
    statement = _PAGES[status, updated_since is not None]
    arguments = [project_id, after_code, limit]
    if updated_since is not None:
        arguments.append(updated_since)
    rows = await connection.fetch(statement, *arguments)
    return [as_seen(unit_from(project_id, row[1:]), row[0]) for row in rows]


async def offers(
    connection: Connection, project_id: UUID, after_code: str, limit: int, status: Status | None
) -> list[Unit]:
    """Units that buyers may see."""
    rows = await connection.fetch(_OFFERS[status], project_id, after_code, limit)
    return [as_seen(unit_from(project_id, row[1:]), row[0]) for row in rows]


async def missing_codes(connection: Connection, project_id: UUID, named: Collection[str]) -> list[str]:
    """The codes of a project that are not among those named."""
    rows = await connection.fetch(_MISSING_CODES, project_id, list(named))
    return [row[0] for row in rows]
