"""${message}."""

from alembic import op

revision = "${up_revision}"
down_revision = ${repr(down_revision)}

STATEMENTS = ()


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
