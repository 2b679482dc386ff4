"""Pages of units. Expired holds are shown as the expiry will write them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.domain.status import Status
from holdfast.domain.unit import Unit, as_seen
from holdfast.storage.boards import ENDS_AT, IS_OVER, stored_states
from holdfast.storage.database import Connection
from holdfast.storage.units import READ_COLUMNS, unit_from

# Units with a floor ($4), if it is given.
_ON_FLOOR = "($4::smallint is null or floor = $4)"

# Units that changed since a time ($5); an expiry that is not written yet is a change.
_CHANGED_SINCE = f"""(
    (updated_hour >= date_trunc('hour', $5::timestamptz at time zone 'UTC') and updated_at >= $5)
    or (status in ('held', 'reserved') and {IS_OVER}
        and greatest({ENDS_AT}, updated_at + interval '1 ms') >= $5)
)"""

# Units in the order of codes; without those of one status ($5), if it is given.
_PAGE = f"""
    select statement_timestamp(), {READ_COLUMNS} from unit
    where project_id = $1 and code > $2 and {_ON_FLOOR} and ($5::text is null or status <> $5)
    order by code limit $3
"""
_PAGE_SINCE = f"""
    select statement_timestamp(), {READ_COLUMNS} from unit
    where project_id = $1 and code > $2 and {_ON_FLOOR} and {_CHANGED_SINCE}
    order by code limit $3
"""

# Units that are seen with a status: one index scan for each way (the states) to store them.
_WITH_STATUS = f"""
    select statement_timestamp(), {READ_COLUMNS}
    from unnest({{states}}) as stored (stored_status, is_over)
    cross join lateral (
        select * from unit
        where project_id = $1 and code > $2 and {_ON_FLOOR} and {{condition}}
            and status = stored_status and coalesce({IS_OVER}, false) = is_over
        order by code limit $3
    ) as unit
    order by code limit $3
"""
_PAGE_WITH_STATUS = _WITH_STATUS.format(states="$5::text[], $6::boolean[]", condition="true")
_PAGE_WITH_STATUS_SINCE = _WITH_STATUS.format(states="$6::text[], $7::boolean[]", condition=_CHANGED_SINCE)

# The codes of a project that are not in a list.
_MISSING_CODES = """
    select code from unit where project_id = $1
    except select unnest($2::text[])
    order by code
"""


async def page(
    connection: Connection,
    project_id: UUID,
    after_code: str,
    limit: int,
    status: Status | None,
    updated_since: datetime | None = None,
    *,
    floor: int | None = None,
    on_sale: bool = False,
) -> list[Unit]:
    """``on_sale`` leaves out the units that buyers do not see, unless a status or a time is given."""
    arguments: list[Any] = [project_id, after_code, limit, floor]
    if updated_since is not None:
        arguments.append(updated_since)
    if status is not None:
        statement = _PAGE_WITH_STATUS if updated_since is None else _PAGE_WITH_STATUS_SINCE
        arguments += stored_states([status])
    elif updated_since is not None:
        statement = _PAGE_SINCE
    else:
        statement = _PAGE
        arguments.append(Status.UNAVAILABLE if on_sale else None)
    rows = await connection.fetch(statement, *arguments)
    return [as_seen(unit_from(project_id, row[1:]), row[0]) for row in rows]


async def missing_codes(connection: Connection, project_id: UUID, named: Collection[str]) -> list[str]:
    return [row[0] for row in await connection.fetch(_MISSING_CODES, project_id, list(named))]
