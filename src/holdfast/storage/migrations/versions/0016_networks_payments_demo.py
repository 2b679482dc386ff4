"""Holds are counted by network, a payment confirms one booking, and what the demo has filled is marked."""

from pathlib import Path

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    statements = Path(__file__).with_suffix(".sql").read_text()
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    connection.run_async(lambda driver: driver.execute(statements))
