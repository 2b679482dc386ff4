"""Bookings are found by their references, which no two of them share."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.execute("create unique index unique_reference on booking (reference)")
