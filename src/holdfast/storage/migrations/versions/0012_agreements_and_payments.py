"""What was signed is kept as it was described then; a deposit is known by its payment."""

from alembic import op

revision = "0012"
down_revision = "0011"

STATEMENTS: tuple[str, ...] = (
    "alter table booking add column agreement jsonb, add column payment_id text",
    "alter type booking_write add attribute agreement text, add attribute payment_id text",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
