"""What boards and figures look up.

Nothing of it is written by those who write units: the sums of events are kept up after the events have their
positions, so that each is counted once however late it was committed.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS: tuple[str, ...] = (
    # Whoever remembers a layout sees by this that it is another one.
    "alter table project add column layout_turn bigint not null default 1",
    # Sales are few: no other write of a booking touches it.
    """
    create index booking_sold on booking (project_id, closed_at) include (price_sar) where status = 'sold'
    """,
    # How often units of a project took a step, hour by hour.
    """
    create table event_hour (
        project_id uuid not null,
        hour timestamptz not null,
        previous_status unit_status not null,
        status unit_status not null,
        steps bigint not null check (steps > 0),
        primary key (project_id, hour, previous_status, status)
    )
    """,
    # One row: its lock is the turn to sum, its number the position up to which events are summed. And when
    # it was last looked whether all units are counted, which costs a look at each.
    """
    create table event_sums (
        only_row boolean primary key default true check (only_row),
        summed_position bigint not null default 0,
        units_compared_at timestamptz not null default '-infinity'
    )
    """,
    "insert into event_sums default values",
    # How many units were created in an hour, by the status that they were created with. Units stay for good,
    # so these are right as long as they are as many as the project has units.
    """
    create table created_hour (
        project_id uuid not null,
        hour timestamptz not null,
        status unit_status not null,
        units bigint not null check (units > 0),
        primary key (project_id, hour, status)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
