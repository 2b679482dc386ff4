"""Holds are counted by network as well, and a payment confirms one booking."""

from alembic import op

revision = "0017"
down_revision = "0016"

_KINDS = ("site", "network", "share")
_FIND_DUPLICATES = """
    do $$
    declare
        found text;
    begin
        select string_agg(format('%s (%s)', payment_id, bookings), ', ') into found
        from (
            select payment_id, string_agg(reference, ' and ' order by number) as bookings
            from booking where payment_id is not null
            group by payment_id having count(*) > 1 order by payment_id limit 10
        ) as duplicate;
        if found is not null then
            raise exception 'a payment confirms one booking, and these are recorded at several, %', found;
        end if;
    end $$
"""

STATEMENTS: tuple[str, ...] = (
    _FIND_DUPLICATES,
    "create unique index one_booking_per_payment on booking (payment_id) where payment_id is not null",
    *(f"alter table booking add column {kind}_id uuid, add column {kind}_slot integer" for kind in _KINDS),
    *(
        f"create unique index one_hold_per_{kind}_slot on booking ({kind}_id, {kind}_slot)"
        f" where {kind}_slot is not null"
        for kind in _KINDS
    ),
    """
    alter table booking add constraint erased_network check (
        buyer_erased_at is null or coalesce(site_id, network_id, share_id) is null
    )
    """,
    "drop type booking_write",
    """
    create type booking_write as (
        number bigint, reference text, project_id uuid, unit_id uuid, token_hash bytea, status text,
        price_sar text, vat_included boolean, vat_rate text, deposit_percent text,
        buyer_name text, buyer_email text, buyer_phone text,
        hold_expires_at timestamptz, reserved_until timestamptz, created_at timestamptz,
        signed_at timestamptz, deposit_confirmed_at timestamptz, closed_at timestamptz,
        ended_at timestamptz, refunded_at timestamptz,
        address_id uuid, visitor_id uuid, site_id uuid, network_id uuid, share_id uuid,
        address_slot integer, visitor_slot integer, site_slot integer, network_slot integer,
        share_slot integer, idempotency_id uuid, buyer_erased_at timestamptz, agreement text, payment_id text
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
