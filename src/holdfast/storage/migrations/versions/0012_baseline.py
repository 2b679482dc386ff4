"""Create the schema that ``0012_baseline.sql`` describes.

Earlier revisions were never released. Their databases are refused; see ``storage.schema``.
"""

from pathlib import Path

from alembic import op

revision = "0012"
down_revision = None


def upgrade() -> None:
    statements = Path(__file__).with_suffix(".sql").read_text()
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    connection.run_async(lambda driver: driver.execute(statements))
