do $$ begin

-- It only adds: the last release neither reads nor writes these columns, and what it signs has no snapshot.
alter table project add column listed boolean not null default false;
-- One without a project is that of the installation.
create table seller (project_id uuid unique nulls not distinct references project, profile jsonb not null);
-- Paths follow from the content. They are kept: signed agreements show them.
create table logo (path text primary key, content bytea not null);
alter table booking add column seller jsonb;
alter type booking_write add attribute seller text;

-- The address of the recipient is that of the booking's buyer: it is erased there, and is nowhere else.
-- No foreign key, as for bookings themselves: an e-mail of a booking that was deleted is not sent.
create table email (
    id uuid primary key default gen_random_uuid(),
    booking_number bigint not null,
    kind text not null check (kind in ('signed', 'deposit', 'reminder')),
    -- The end of the reservation that a reminder is about.
    reserved_until timestamptz(3),
    status text not null default 'queued' check (status in ('queued', 'sent', 'failed', 'suppressed')),
    -- The token of the link, encrypted, until the e-mail is sent or given up.
    sealed_token bytea,
    attempts integer not null default 0,
    last_error text,
    created_at timestamptz(3) not null default clock_timestamp(),
    -- When it is sent, or sent again if the worker that is sending it does not record what became of it. In
    -- the end: when it ended.
    due_at timestamptz not null default clock_timestamp(),
    ended_at timestamptz(3),
    constraint one_email_of_a_kind unique nulls not distinct (booking_number, kind, reserved_until),
    constraint reminder_names_an_end check ((kind = 'reminder') = (reserved_until is not null)),
    constraint queued_has_no_end check ((status = 'queued') = (ended_at is null)),
    constraint token_is_erased check (status = 'queued' or sealed_token is null)
);
create index email_due on email (status, due_at);
create index email_by_time on email (created_at, id);
create index email_by_status on email (status, created_at, id);
create type email_write as (booking_number bigint, unit_id uuid, kind text, sealed_token bytea);

end $$
