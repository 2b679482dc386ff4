do $$ begin

-- Bookings are found by their references, which no two of them share.
create unique index unique_reference on booking (reference);

-- When autovacuum takes up the tables that change all day. By default it waits until a fifth of a table is dead or
-- new: on a large table that is much to scan at once, and until then the table and its indexes grow.
-- Setting this waits for a vacuum of the table that is under way, but for no reader and no writer.

-- A step of a booking changes columns that are indexed, so it leaves dead rows that only a vacuum removes.
alter table unit set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
alter table booking set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
-- Numbering leaves a dead row for each event, and trimming frees the oldest pages: new events are to find room there.
alter table event set (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
-- Only appended to, and trimmed at its old end: it is vacuumed, and its rows frozen, a small part at a time.
alter table audit_entry set (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_insert_scale_factor = 0.02, autovacuum_vacuum_insert_threshold = 10000
);
-- Queues, which have their thresholds already: their vacuum does not pause while rows come and go by the thousand.
alter table pending_delivery set (autovacuum_vacuum_cost_delay = 0);
alter table in_flight set (autovacuum_vacuum_cost_delay = 0);

end $$
