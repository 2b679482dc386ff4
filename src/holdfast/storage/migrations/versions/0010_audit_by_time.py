"""The audit trail as a whole, and keys, the latest first."""

from alembic import op

revision = "0010"
down_revision = "0009"

STATEMENTS: tuple[str, ...] = (
    # In place of the one by id, and not beside it: every change of a unit writes an entry, and pays for each
    # index. Entries of the clock tell when a hold was over, which may be before they are written.
    "alter table audit_entry drop constraint audit_entry_pkey, add primary key (at, id)",
    "create index api_key_by_time on api_key (created_at, id)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
