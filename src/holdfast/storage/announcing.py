"""What staff are told on every page: deliveries that failed, and endpoints that fail."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.endpoint import FAILING_AFTER
from holdfast.storage.database import Connection
from holdfast.storage.endpoint_labels import name_of

COUNTED = 100
"""So many failed deliveries are counted; whoever has more need not know how many."""
NAMED = 20

# What ended a moment ago may be recorded only after a look, at a time before it. So a look sees what had
# ended a moment before. What is recorded later still is told too, as long as it ended after the newest that
# was shown: that is how far somebody has seen, not the time of the look.
_SETTLED = "statement_timestamp() - interval '1 second'"
# When an endpoint began to count as failing, as `is_failing` in the domain has it.
_BEGAN = "least(gone_at, failing_since + $2::interval)"
_NEWS = f"""
    select failed.count, failed.newest_at, failing.id, failing.url, failing.description, failing.began_at
    from (
        select count(*), max(ended_at) as newest_at from (
            select ended_at from ended_delivery
            where status = 'failed' and ended_at > $1 and ended_at <= {_SETTLED}
            order by ended_at desc limit {COUNTED}
        ) as counted
    ) as failed
    left join (
        select id, url, description, {_BEGAN} as began_at from endpoint
        where failing_since is not null and removed_at is null and not paused
            and {_BEGAN} > $1 and {_BEGAN} <= {_SETTLED}
        order by began_at desc, id limit {NAMED}
    ) as failing on true
"""
# Not back to an earlier time, by a page that was open for long; nor ahead, to what is still to come.
_SEEN = """
    update staff set failures_seen_at = greatest(failures_seen_at, least($2::timestamptz, clock_timestamp()))
    where id = $1
"""


class FailingEndpoint(NamedTuple):
    id: UUID
    url: str
    description: str
    began_at: datetime
    """When it began to count as failing."""

    @property
    def name(self) -> str:
        return name_of(self.url, self.description)


class News(NamedTuple):
    failed: int
    """Deliveries, counted up to ``COUNTED``."""
    failing: list[FailingEndpoint]
    up_to: datetime
    """The newest of it: up to when somebody who sees this has seen."""

    @property
    def is_any(self) -> bool:
        return bool(self.failed or self.failing)

    @property
    def is_more(self) -> bool:
        """Whether more have failed than are counted."""
        return self.failed >= COUNTED


async def news(connection: Connection, since: datetime) -> News:
    rows = await connection.fetch(_NEWS, since, FAILING_AFTER)
    failing = [FailingEndpoint(*row[2:]) for row in rows if row[2] is not None]
    up_to = max([rows[0][1] or since, *(one.began_at for one in failing)])
    return News(rows[0][0], failing, up_to)


async def note_seen(connection: Connection, staff_id: UUID, at: datetime) -> None:
    await connection.execute(_SEEN, staff_id, at)
