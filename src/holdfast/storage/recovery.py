"""Recovery: after one that lost changes, nothing is given out again that was given out in the lost time."""

from __future__ import annotations

import asyncpg

from holdfast.domain.project import COUNTED_BELOW
from holdfast.storage.database import (
    BACKGROUND,
    FOREGROUND,
    NO_TIMEOUTS,
    Connection,
    connect,
    translate_errors,
)
from holdfast.storage.errors import SchemaError
from holdfast.storage.schema import ADVISORY_LOCK, check

COUNTER_GAP = 1_000_000

# Others have seen what happened in the lost time: buyers have references, receivers have ids of deliveries,
# readers of the feed have cursors, clients have ETags. So every counter goes on from the time: nothing counts
# a thousand a second for long, and a second recovery to the same moment goes on further ahead than the first.
# The ids of events, and so those of deliveries, follow from the version of their unit, and ETags from that of
# the project too.
#
# People read the numbers of units, and those of bookings end at 2**32, so these are smaller: a second
# recovery to the same moment goes on at another place by chance. If 10,000 numbers were given out in between,
# it meets one of them once in 5,000 times. Near the end it does more often: a recovery gives up at most a
# fortieth of what is left, so that there always is something left.
#
# A person who signed out in the lost time must not be signed in again, and a link works once.
ADVANCE = f"""
    do $$
    declare
        seconds float8 = extract(epoch from clock_timestamp() - timestamptz '2025-01-01 00:00Z');
        start bigint = greatest(seconds * 1000, {COUNTED_BELOW});
        counter record;
    begin
        for counter in
            select *, coalesce(last_value, start_value) + {COUNTER_GAP} as next
            from pg_sequences where schemaname = current_schema()
        loop
            perform setval(
                format('%I.%I', counter.schemaname, counter.sequencename)::regclass,
                least(counter.max_value, case
                    when counter.sequencename in ('booking_number', 'unit_ref_number')
                        then greatest(counter.next, seconds::bigint)
                            + (random() * least(100000000, (counter.max_value - counter.next) / 40))::bigint
                    else greatest(counter.next, start)
                end)
            );
        end loop;
        update event_feed set last_position = greatest(last_position + {COUNTER_GAP}, start);
        update project set
            version = greatest(version + {COUNTER_GAP}, start), turn = greatest(turn + {COUNTER_GAP}, start),
            layout_turn = greatest(layout_turn + {COUNTER_GAP}, start);
        update unit set
            version = greatest(version + {COUNTER_GAP}, start), turn = greatest(turn + {COUNTER_GAP}, start);
        delete from staff_session;
        delete from setup_link;
    end $$;
"""

_IN_USE = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid() and application_name = any($1::text[])
    )
"""


async def check_unused(connection: Connection) -> None:
    """Raise SchemaError while a process of the service is connected."""
    if await connection.fetchval(_IN_USE, [FOREGROUND, BACKGROUND]):
        raise SchemaError("Holdfast is running on this database; stop every `serve` and `work` first.")


async def advance(database_url: str) -> None:
    """Advance every counter, in one transaction. The URL is that of the owner."""
    await check(database_url)
    with translate_errors():
        connection = await connect(database_url, server_settings=NO_TIMEOUTS)
        try:
            async with connection.transaction():
                await connection.execute(f"select pg_advisory_xact_lock({ADVISORY_LOCK})")
                await check_unused(connection)
                await connection.execute(ADVANCE)
        except asyncpg.InsufficientPrivilegeError as failure:
            raise SchemaError(
                f"PostgreSQL refuses to advance the counters: {failure}. Connect as the owner of the tables."
            ) from failure
        finally:
            await connection.close()
