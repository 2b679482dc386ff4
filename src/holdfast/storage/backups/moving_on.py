"""What a restored database does not take up where the backup ended.

What happened after the backup is lost here, but others have seen it: buyers have references, receivers have
ids of deliveries, readers of the feed have cursors. Nothing that was given out then may be given out again
for something else. So all that counts goes on far beyond what can have been counted since.
"""

from __future__ import annotations

from collections.abc import Mapping

FURTHER = 1_000_000

COUNTED = {
    "projects": "project",
    "units": "unit",
    "bookings": "booking",
    "events": "event",
    "endpoints": "endpoint",
    "pendingDeliveries": "pending_delivery",
    "keys": "api_key",
    "staff": "staff",
}

COUNTS = "select " + ", ".join(f"(select count(*) from {table})" for table in COUNTED.values())

# The ids of events, and so those of deliveries, follow from the version of their unit.
_MOVE_ON = f"""
    select setval('booking_number', least(last_value + {FURTHER}, 4294967295)) from booking_number;
    select setval('unit_ref_number', last_value + {FURTHER}) from unit_ref_number;
    update event_feed set last_position = last_position + {FURTHER};
    update unit set version = version + {FURTHER};
"""

# Whoever has signed out since must not be signed in again, and a link works once.
_SIGN_OUT = """
    delete from staff_session;
    delete from setup_link;
"""

_PAUSE = "update endpoint set paused = true where removed_at is null;"

_MISSING = """
    if (select count(*) from {table}) <> {count} then
        raise exception 'the backup says that there are {count} rows of {table}, and that is not what came';
    end if;
"""


def closing_statements(counts: Mapping[str, int], *, paused: bool) -> str:
    """The last part of the transaction. The dump has left the search path empty, and ours is the usual one:
    a table that is not found by it is one that Holdfast would not find either."""
    checks = "".join(
        _MISSING.format(table=table, count=counts[name]) for name, table in COUNTED.items() if name in counts
    )
    return f"""
        reset search_path;
        do $$ begin {checks} end $$;
        {_MOVE_ON}
        {_SIGN_OUT}
        {_PAUSE if paused else ""}
        commit;
    """
