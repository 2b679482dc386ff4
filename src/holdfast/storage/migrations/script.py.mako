"""${message}."""

from alembic import op

revision = "${up_revision}"
down_revision = ${repr(down_revision)}

STATEMENTS = ()


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
