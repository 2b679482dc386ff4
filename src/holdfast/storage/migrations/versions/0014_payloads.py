"""The payload of an event comes with the event, so the database no longer builds it."""

from alembic import op

revision = "0014"
down_revision = "0013"

STATEMENTS: tuple[str, ...] = (
    "alter type event_write add attribute payload text",
    "drop function delivery_body(uuid, text, timestamptz, uuid, text, text, text, text, text)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
