"""Units, events and keys.

The database refuses what the domain refuses: every bound of the field table stands here as well.
The bounds are domains rather than CHECKs of the table, because PostgreSQL parses the CHECKs of a
table anew for every statement: with one CHECK a column an update of one row took three times the
database's time. Numbers are plain ``numeric``, because ``numeric(14, 2)`` would round a third
decimal away in silence.
"""

from alembic import op

revision = "0001"
down_revision = None

STATEMENTS = (
    """
    create domain project_slug as text collate "C"
        check (length(value) between 2 and 100 and value ~ '^[a-z0-9]+(-[a-z0-9]+)*$')
    """,
    """
    create domain unit_code as text collate "C"
        check (length(value) between 1 and 50 and value is nfc normalized and value = btrim(value))
    """,
    "create domain unit_type as text check (length(value) between 1 and 100)",
    "create domain unit_description as text check (length(value) <= 10000)",
    """
    create domain area_sqm as numeric
        check (value > 0 and value <= 9999999.9999 and value = round(value, 4))
    """,
    """
    create domain amount_sar as numeric
        check (value between 0 and 999999999999.99 and value = round(value, 2))
    """,
    """
    create domain percentage as numeric check (value between 0 and 100 and value = round(value, 4))
    """,
    "create domain room_count as smallint check (value between 0 and 999)",
    "create domain delivery_year as smallint check (value between 1900 and 2200)",
    # json and not jsonb, which would turn the members of an object round: media are given back as sent.
    """
    create domain linked_media as json
        check (json_typeof(value) = 'array' and json_array_length(value) <= 100)
    """,
    """
    create domain unit_status as text
        check (value in ('available', 'held', 'reserved', 'sold', 'unavailable'))
    """,
    "create domain record_version as bigint check (value >= 1)",
    """
    create table project (
        id uuid primary key,
        slug project_slug not null unique,
        name text not null check (length(name) between 1 and 200),
        version record_version not null default 1,
        created_at timestamptz(3) not null default clock_timestamp()
    )
    """,
    "create sequence unit_ref_number start 100001",
    # fillfactor leaves room on the page for the next version of a row (HOT updates).
    """
    create table unit (
        id uuid primary key,
        project_id uuid not null references project,
        code unit_code not null,
        ref text collate "C" not null unique default 'U-' || nextval('unit_ref_number'),
        type unit_type not null,
        area_sqm area_sqm not null,
        price_sar amount_sar not null,
        vat_included boolean,
        vat_rate percentage,
        deposit_percent percentage,
        bedrooms room_count,
        bathrooms room_count,
        delivery_year delivery_year,
        description unit_description,
        images linked_media not null,
        files linked_media not null,
        status unit_status not null,
        archived boolean not null default false,
        hold_expires_at timestamptz(3),
        reserved_until timestamptz(3),
        version record_version not null,
        created_at timestamptz(3) not null,
        updated_at timestamptz(3) not null,
        -- Indexed in place of updated_at: it changes once an hour at most, so the many updates
        -- of a busy unit stay HOT.
        updated_hour timestamp not null
            generated always as (date_trunc('hour', updated_at at time zone 'UTC')) stored,
        constraint unit_of_project unique (project_id, code),
        constraint archived_is_unavailable check (status = 'unavailable' or not archived),
        constraint held_has_an_end check ((status = 'held') = (hold_expires_at is not null)),
        constraint reserved_has_an_end check ((status = 'reserved') = (reserved_until is not null))
    ) with (fillfactor = 70)
    """,
    # What a write sends for each unit, as one array: it costs both sides less than an array a column.
    """
    create type unit_write as (
        id uuid, project_id uuid, code text, type text, area_sqm numeric, price_sar numeric,
        vat_included boolean, vat_rate numeric, deposit_percent numeric, bedrooms smallint,
        bathrooms smallint, delivery_year smallint, description text, images json, files json,
        status text, archived boolean, hold_expires_at timestamptz, reserved_until timestamptz,
        version bigint, created_at timestamptz, updated_at timestamptz, found_version bigint
    )
    """,
    # Most writes are a new price or a new status; this much of a unit is enough for them.
    """
    create type unit_state_write as (
        id uuid, price_sar numeric, status text, archived boolean, hold_expires_at timestamptz,
        reserved_until timestamptz, version bigint, updated_at timestamptz, found_version bigint
    )
    """,
    # Neither starts with project_id: on an empty table PostgreSQL takes any index that does for the
    # look-up of a code, and a plan that is made once would then read the whole project for each code.
    "create index unit_by_status on unit (status, project_id, code)",
    "create index unit_by_updated_hour on unit (updated_hour, project_id)",
    # No transition table in a trigger: one write may carry two steps (a lapsed hold is released,
    # then the unit is sold), so the pair (old row, new row) proves nothing. Each step is an event.
    """
    create table event (
        id uuid primary key,
        project_id uuid not null references project,
        unit_id uuid not null references unit,
        unit_version record_version not null,
        type text not null,
        previous_status unit_status not null,
        status unit_status not null,
        booking_reference text,
        created_at timestamptz(3) not null,
        position bigint,
        constraint one_event_per_change unique (unit_id, unit_version),
        constraint known_transition check ((type, previous_status, status) in (
            ('unit.held', 'available', 'held'),
            ('unit.released', 'held', 'available'),
            ('unit.released', 'reserved', 'available'),
            ('unit.reserved', 'held', 'reserved'),
            ('unit.sold', 'reserved', 'sold'),
            ('unit.sold', 'available', 'sold'),
            ('unit.available', 'unavailable', 'available'),
            ('unit.unavailable', 'available', 'unavailable'),
            ('unit.unavailable', 'held', 'unavailable'),
            ('unit.unavailable', 'reserved', 'unavailable'),
            ('unit.unavailable', 'unavailable', 'unavailable'),
            ('unit.unavailable', 'sold', 'unavailable')
        )),
        constraint booking_is_named check (
            (type in ('unit.reserved', 'unit.sold')) = (booking_reference is not null)
        )
    )
    """,
    "create unique index event_by_position on event (position) where position is not null",
    "create index event_of_project on event (project_id, position) where position is not null",
    "create index event_unnumbered on event (created_at) where position is null",
    # One row: its lock is the turn to number events, its numbers are the ends of the feed.
    """
    create table event_feed (
        only_row boolean primary key default true check (only_row),
        last_position bigint not null default 0,
        trimmed_position bigint not null default 0 check (trimmed_position <= last_position)
    )
    """,
    "insert into event_feed default values",
    """
    create table api_key (
        id uuid primary key,
        name text not null check (length(name) between 1 and 200),
        hint text not null,
        key_hash bytea not null unique check (octet_length(key_hash) = 32),
        scopes text[] not null check (
            cardinality(scopes) > 0
            and scopes <@ array['integration', 'payments', 'backoffice', 'admin']
        ),
        limited_to_projects boolean not null,
        created_at timestamptz(3) not null default clock_timestamp(),
        expires_at timestamptz(3),
        revoked_at timestamptz(3),
        last_used_at timestamptz(3)
    )
    """,
    """
    create table api_key_project (
        api_key_id uuid not null references api_key,
        project_id uuid not null references project,
        primary key (api_key_id, project_id)
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
