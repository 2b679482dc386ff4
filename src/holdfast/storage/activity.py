"""Who is at work in the database."""

from holdfast.storage.database import Connection

# As the database's own statistics have it at this moment; what they do not tell us counts as rest.
_OTHERS_AT_WORK = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and application_name = current_setting('application_name')
            and state <> 'idle' and pid <> pg_backend_pid()
    )
"""


async def are_others_at_work(connection: Connection) -> bool:
    """Whether another connection of ours has a statement or a transaction on its way."""
    return bool(await connection.fetchval(_OTHERS_AT_WORK))
