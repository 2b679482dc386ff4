"""What pages about endpoints and deliveries look up."""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS: tuple[str, ...] = (
    # Announced on every page until they are seen.
    "create index ended_failed on ended_delivery (ended_at) where status = 'failed'",
    # What ended since it was last counted. Each row is written at its end, so this costs next to nothing.
    "create index ended_by_end on ended_delivery (ended_at)",
    """
    create table delivery_hour (
        endpoint_id uuid not null,
        hour timestamptz(3) not null,
        delivered integer not null,
        failed integer not null,
        primary key (endpoint_id, hour)
    )
    """,
    # Null: not yet.
    "alter table installation add column deliveries_counted_upto timestamptz(3)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
