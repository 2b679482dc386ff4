"""Bookings have unique references, and tables that change all day are vacuumed soon."""

from pathlib import Path

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text())
