"""Profiles of sellers, their snapshot in signed bookings, projects that are listed, and e-mail to buyers."""

from pathlib import Path

from alembic import op

revision = "0017.1"
down_revision = "0017"


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text())
