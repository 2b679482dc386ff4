"""Profiles of sellers, their snapshot in signed bookings, and projects that are listed for buyers.

It only adds: the last release neither reads nor writes these columns, and what it signs has no snapshot.
"""

from alembic import op

revision = "0017.1"
down_revision = "0017"

STATEMENTS: tuple[str, ...] = (
    "alter table project add column listed boolean not null default false",
    # One without a project is that of the installation.
    """
    create table seller (
        project_id uuid unique nulls not distinct references project, profile jsonb not null
    )
    """,
    # Named after their content, and kept: signed agreements show them.
    "create table logo (name text primary key, media_type text not null, content bytea not null)",
    "alter table booking add column seller jsonb",
    "alter type booking_write add attribute seller text",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
