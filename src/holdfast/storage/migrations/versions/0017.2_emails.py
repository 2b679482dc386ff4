"""An outbox and log of e-mail to buyers."""

from pathlib import Path

from alembic import op

revision = "0017.2"
down_revision = "0017.1"


def upgrade() -> None:
    op.execute(Path(__file__).with_suffix(".sql").read_text())
