"""Holds are counted by network, a payment confirms one booking, and what the demo has filled is marked."""

from alembic import op

revision = "0016"
down_revision = "0015"

_ADD_HOLDER = """
    alter table booking add column {kind}_id uuid, add column {kind}_slot integer;
    alter type booking_write add attribute {kind}_id uuid, add attribute {kind}_slot integer;
    create unique index one_hold_per_{kind}_slot on booking ({kind}_id, {kind}_slot)
        where {kind}_slot is not null;
"""
_MARK_AND_CONSTRAIN = """
    alter table installation add column filled_by_demo boolean not null default false;
    -- Databases that the demo filled before there was a mark.
    update installation set filled_by_demo = true
    where (select array_agg(slug::text) from project) = array['narjis-heights'];
    alter table booking add constraint erased_network check (
        buyer_erased_at is null or coalesce(site_id, network_id, share_id) is null
    );
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
    end $$;
    create unique index one_booking_per_payment on booking (payment_id) where payment_id is not null;
"""


def upgrade() -> None:
    statements = [_ADD_HOLDER.format(kind=kind) for kind in ("site", "network", "share")]
    connection = op.get_bind().connection.dbapi_connection
    assert connection is not None
    connection.run_async(lambda driver: driver.execute("".join([*statements, _MARK_AND_CONSTRAIN])))
