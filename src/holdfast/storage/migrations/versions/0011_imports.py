"""Files of units on their way in: their rows, what was chosen for them, what came of them.

They stand here and not on a disk, so that every process can go on where another stopped.
"""

from alembic import op

revision = "0011"
down_revision = "0010"

STATEMENTS: tuple[str, ...] = (
    """
    create table import_file (
        id uuid primary key,
        project_id uuid not null references project,
        staff_id uuid not null,
        file_name text not null,
        created_at timestamptz not null,
        contents bytea not null,
        choice bytea,
        stage text not null check (stage in ('uploaded', 'checking', 'checked', 'importing', 'imported')),
        -- Of the run that is under way; one that was replaced finds another here and stops.
        run_id uuid,
        -- When that run was last known to be alive.
        beat_at timestamptz(3),
        constraint chosen_before_a_run check (stage = 'uploaded' or choice is not null)
    )
    """,
    "create index import_file_of_staff on import_file (staff_id, created_at)",
    "create index import_file_by_time on import_file (created_at)",
    """
    create table import_part (
        import_id uuid not null references import_file on delete cascade,
        sheet smallint not null,
        part integer not null,
        rows bytea not null,
        primary key (import_id, sheet, part)
    )
    """,
    """
    create table import_result (
        import_id uuid not null references import_file on delete cascade,
        stored boolean not null,
        part integer not null,
        outcome text not null check (outcome in ('created', 'replaced', 'unchanged', 'refused')),
        rows_counted integer not null,
        findings bytea,
        primary key (import_id, stored, outcome, part)
    )
    """,
    # They come compressed.
    "alter table import_file alter column contents set storage external",
    "alter table import_part alter column rows set storage external",
    "alter table import_result alter column findings set storage external",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
