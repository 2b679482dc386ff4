alter table booking
    add column prefix_56_id uuid, add column prefix_48_id uuid, add column project_network_id uuid,
    add column prefix_56_slot integer, add column prefix_48_slot integer;
alter type booking_write
    add attribute prefix_56_id uuid, add attribute prefix_48_id uuid,
    add attribute project_network_id uuid,
    add attribute prefix_56_slot integer, add attribute prefix_48_slot integer;
create unique index one_hold_per_prefix_56_slot on booking (prefix_56_id, prefix_56_slot)
    where prefix_56_slot is not null;
create unique index one_hold_per_prefix_48_slot on booking (prefix_48_id, prefix_48_slot)
    where prefix_48_slot is not null;
create index booking_by_network on booking (project_network_id, hold_expires_at)
    where project_network_id is not null;
alter table installation add column filled_by_demo boolean not null default false;
-- Databases that the demo filled before there was a mark.
update installation set filled_by_demo = true
where (select array_agg(slug::text) from project) = array['narjis-heights'];
alter table booking add constraint erased_network check (
    buyer_erased_at is null or coalesce(prefix_56_id, prefix_48_id, project_network_id) is null
);
do $$
declare
    found text[];
begin
    select array_agg(format('%s (%s)', payment_id, bookings) order by payment_id) into found
    from (
        select payment_id, string_agg(reference, ' and ' order by number) as bookings
        from booking where payment_id is not null
        group by payment_id having count(*) > 1
    ) as duplicate;
    if found is not null then
        raise exception 'these payments are recorded on more than one booking: %', concat(
            array_to_string(found[:10], ', '),
            case when cardinality(found) > 10 then format(', and %s more', cardinality(found) - 10) end
        );
    end if;
end $$;
create unique index one_booking_per_payment on booking (payment_id) where payment_id is not null;
