"""Bookings have unique references, and tables that change all day are vacuumed soon."""

from pathlib import Path

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    statements = Path(__file__).with_suffix(".sql").read_text()
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    connection.run_async(lambda driver: driver.execute(statements))
