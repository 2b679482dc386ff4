"""A cause of failure that has parameters keeps its message id and parameters, for translation.

The text stays as it is. A cause without parameters is its own message id and needs no second column.
"""

from alembic import op

revision = "0013"
down_revision = "0012"

STATEMENTS: tuple[str, ...] = (
    "alter table attempt add column cause_message json",
    "alter table pending_delivery add column last_cause_message json",
    "alter table ended_delivery add column last_cause_message json",
    "alter table endpoint add column failing_cause_message json",
    "alter type attempt_write add attribute cause_message json",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
