"""Staff, their sessions, and how often somebody tried to be one of them."""

from alembic import op

revision = "0006"
down_revision = "0005"

STATEMENTS: tuple[str, ...] = (
    # ``email_key`` is the address as it is compared. The database's own lower() goes by a locale, which
    # another server may not have.
    """
    create table staff (
        id uuid primary key,
        email text not null check (length(email) between 3 and 254),
        email_key text collate "C" not null constraint one_staff_per_email unique,
        name text not null check (length(name) between 1 and 200),
        role text not null check (role in ('admin', 'integrator', 'sales', 'viewer')),
        password_hash text,
        second_factor_sealed bytea,
        second_factor_step bigint not null default 0,
        offered_factor_sealed bytea,
        language text not null default 'en' check (language in ('en', 'ar')),
        digits text not null default 'latn' check (digits in ('latn', 'arab')),
        theme text not null default 'auto' check (theme in ('auto', 'light', 'dark')),
        created_at timestamptz(3) not null default clock_timestamp(),
        disabled_at timestamptz(3),
        last_signed_in_at timestamptz(3),
        failures_seen_at timestamptz(3) not null default clock_timestamp()
    )
    """,
    "create index staff_by_start on staff (created_at, id)",
    # Sessions that have ended are deleted.
    """
    create table staff_session (
        id uuid primary key,
        token_hash bytea not null unique,
        staff_id uuid not null references staff,
        address text not null,
        agent text not null,
        created_at timestamptz(3) not null default clock_timestamp(),
        last_seen_at timestamptz(3) not null default clock_timestamp(),
        notice text
    ) with (fillfactor = 70)
    """,
    "create index staff_session_of_staff on staff_session (staff_id)",
    "create index staff_session_by_start on staff_session (created_at)",
    # Without a person it makes the first admin, while there is no staff.
    """
    create table setup_link (
        token_hash bytea primary key,
        staff_id uuid unique references staff,
        expires_at timestamptz(3) not null
    )
    """,
    # ``subject`` is the hash of an account or of an address: what strangers type is not kept.
    """
    create table sign_in_attempts (
        subject bytea primary key,
        failures integer not null,
        first_at timestamptz(3) not null,
        last_at timestamptz(3) not null
    ) with (fillfactor = 70)
    """,
    "create index sign_in_attempts_by_time on sign_in_attempts (last_at)",
    # Where commands find the pages, as `serve` last announced it.
    "alter table installation add column public_url text",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
