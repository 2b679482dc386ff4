"""Who is at work in the database."""

from holdfast.storage.database import FOREGROUND, Connection

# As the database's own statistics have it at this moment; what they do not tell us counts as rest.
_SOMEBODY_WAITS = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and application_name = $1 and pid <> pg_backend_pid()
            and (state not in ('idle', 'disabled') or state_change > clock_timestamp() - interval '0.1 s')
    )
"""


async def does_somebody_wait(connection: Connection) -> bool:
    """Whether a statement or a transaction of the foreground is on its way, or was a moment ago."""
    return bool(await connection.fetchval(_SOMEBODY_WAITS, FOREGROUND))
