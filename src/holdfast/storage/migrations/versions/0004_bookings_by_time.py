"""Bookings are listed by their time, and a unit's lapsed ones are found by the time of their end.

Numbers are drawn in blocks by each process, so their order is not that of time.
"""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = (
    "drop index booking_of_unit, booking_of_project, booking_by_status",
    "create index booking_of_unit on booking (unit_id, status, ended_at)",
    "create index booking_of_project on booking (project_id, created_at, number)",
    # Of those that lapsed there are so many that the latest are found without it.
    "create index booking_by_status on booking (status, created_at, number) where status <> 'lapsed'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
