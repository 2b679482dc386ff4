"""Bookings, the audit trail, and what projects settle for themselves.

``turn`` counts every storing of a unit, also when only its booking changes (a signature): a writer
stores only what still is as it was found, and the unit's own version tells of the unit alone.
"""

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = (
    "alter table unit add column turn bigint not null default 1",
    # A ref comes from a sequence and is never changed, so it is unique without an index, which every change
    # of status would pay for.
    "alter table unit drop constraint unit_ref_key",
    """
    create index unit_by_end on unit (coalesce(hold_expires_at, reserved_until))
        where coalesce(hold_expires_at, reserved_until) is not null
    """,
    "drop type unit_write, unit_state_write",
    """
    create type unit_write as (
        id uuid, project_id uuid, code text, type text, area_sqm text, price_sar text,
        vat_included boolean, vat_rate text, deposit_percent text, bedrooms smallint,
        bathrooms smallint, delivery_year smallint, description text, images json, files json,
        status text, archived boolean, hold_expires_at timestamptz, reserved_until timestamptz,
        version bigint, created_at timestamptz, updated_at timestamptz, found_turn bigint
    )
    """,
    """
    create type unit_state_write as (
        id uuid, price_sar text, status text, archived boolean, hold_expires_at timestamptz,
        reserved_until timestamptz, version bigint, updated_at timestamptz, found_turn bigint
    )
    """,
    """
    alter table project
        add column turn bigint not null default 1,
        add column hold_seconds float8 check (hold_seconds > 0 and hold_seconds <= 604800),
        add column reservation_days float8 check (reservation_days > 0 and reservation_days <= 3650)
    """,
    # Where staff have put a unit; units without a row stand where their code says.
    """
    create table unit_place (
        unit_id uuid primary key references unit,
        project_id uuid not null references project,
        building text check (length(building) between 1 and 50),
        floor smallint,
        position smallint
    )
    """,
    "create index unit_place_of_project on unit_place (project_id)",
    "create sequence booking_number maxvalue 4294967295",
    """
    create domain booking_status as text check (value in (
        'open', 'signed', 'reserved', 'sold', 'lapsed', 'cancelled', 'refund-due', 'refunded'
    ))
    """,
    # A function for the same reason as is_known_transition: a CHECK is parsed anew for every statement.
    """
    create function is_sound_booking(
        status text, signed_at timestamptz, deposit_confirmed_at timestamptz, reserved_until timestamptz,
        closed_at timestamptz, ended_at timestamptz, refunded_at timestamptz
    ) returns boolean immutable parallel safe language plpgsql as $$
        begin
            return case
                when status in ('open', 'signed') then
                    (status = 'signed') = (signed_at is not null)
                    and num_nonnulls(deposit_confirmed_at, closed_at, ended_at, refunded_at) = 0
                when status = 'reserved' then
                    num_nulls(signed_at, deposit_confirmed_at, reserved_until) = 0
                    and num_nonnulls(closed_at, ended_at, refunded_at) = 0
                when status = 'sold' then closed_at is not null and num_nonnulls(ended_at, refunded_at) = 0
                when status in ('lapsed', 'cancelled') then
                    ended_at is not null and num_nonnulls(deposit_confirmed_at, refunded_at) = 0
                else
                    num_nulls(ended_at, deposit_confirmed_at) = 0
                    and (status = 'refunded') = (refunded_at is not null)
            end;
        end
    $$
    """,
    """
    create table booking (
        number bigint primary key,
        reference text collate "C" not null,
        project_id uuid not null,
        -- No reference, as with audit_entry: a booking is stored by the statement that stores its unit,
        -- units stay for good, and the check costs a tenth of the statement.
        unit_id uuid not null,
        token_hash bytea not null,
        status booking_status not null,
        price_sar amount_sar not null,
        vat_included boolean,
        vat_rate percentage,
        deposit_percent percentage,
        buyer_name text,
        buyer_email text,
        buyer_phone text,
        hold_expires_at timestamptz(3),
        reserved_until timestamptz(3),
        created_at timestamptz(3) not null,
        signed_at timestamptz(3),
        deposit_confirmed_at timestamptz(3),
        closed_at timestamptz(3),
        ended_at timestamptz(3),
        refunded_at timestamptz(3),
        address_id uuid,
        visitor_id uuid,
        address_slot integer,
        visitor_slot integer,
        idempotency_id uuid,
        constraint sound_booking check (is_sound_booking(
            status, signed_at, deposit_confirmed_at, reserved_until, closed_at, ended_at, refunded_at
        ))
    ) with (fillfactor = 80)
    """,
    # No unit is ever held or sold twice, whatever the code believes.
    """
    create unique index one_booking_claims_a_unit on booking (unit_id)
        where status in ('open', 'signed', 'reserved', 'sold')
    """,
    "create index booking_of_unit on booking (unit_id, number)",
    "create index booking_of_project on booking (project_id, number)",
    # Of those that lapsed there are so many that the latest are found without it.
    "create index booking_by_status on booking (status, number) where status <> 'lapsed'",
    """
    create unique index one_hold_per_address_slot on booking (address_id, address_slot)
        where address_slot is not null
    """,
    """
    create unique index one_hold_per_visitor_slot on booking (visitor_id, visitor_slot)
        where visitor_slot is not null
    """,
    """
    create unique index one_booking_per_idempotency_key on booking (unit_id, idempotency_id)
        where idempotency_id is not null
    """,
    """
    create type booking_write as (
        number bigint, reference text, project_id uuid, unit_id uuid, token_hash bytea, status text,
        price_sar text, vat_included boolean, vat_rate text, deposit_percent text,
        buyer_name text, buyer_email text, buyer_phone text,
        hold_expires_at timestamptz, reserved_until timestamptz, created_at timestamptz,
        signed_at timestamptz, deposit_confirmed_at timestamptz, closed_at timestamptz,
        ended_at timestamptz, refunded_at timestamptz,
        address_id uuid, visitor_id uuid, address_slot integer, visitor_slot integer, idempotency_id uuid
    )
    """,
    # The id follows from the unit and its version, which are unique; nobody looks an event up by it.
    "alter table event drop constraint event_unit_id_fkey, drop constraint event_pkey",
    "alter table event replica identity using index one_event_per_change",
    """
    create table audit_entry (
        id bigint generated always as identity primary key,
        subject_id uuid not null,
        project_id uuid not null,
        at timestamptz(3) not null,
        actor_kind text not null,
        actor_id text,
        request_id text,
        action text not null,
        booking_reference text,
        before json,
        after json not null
    )
    """,
    "create index audit_of_subject on audit_entry (subject_id, id)",
    """
    create type audit_write as (
        subject_id uuid, project_id uuid, at timestamptz, actor_kind text, actor_id text,
        request_id text, action text, booking_reference text, before json, after json
    )
    """,
    """
    create type event_write as (
        id uuid, project_id uuid, unit_id uuid, unit_version bigint, type text, previous_status text,
        status text, booking_reference text, created_at timestamptz
    )
    """,
    # What the clock writes: of the unit, and of the booking that ends with it.
    """
    create type release_write as (
        unit_id uuid, version bigint, at timestamptz,
        booking_number bigint, booking_status text, ended_at timestamptz
    )
    """,
    # Known to this installation alone: what is made with it can be neither guessed nor recomputed outside.
    """
    create table installation (
        only_row boolean primary key default true check (only_row),
        secret bytea not null default decode(
            replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'
        )
    )
    """,
    "insert into installation default values",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
