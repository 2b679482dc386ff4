-- The schema of revision 0012, whole. Later revisions change it step by step.
--
-- The database refuses what the domain refuses: every bound of a field stands here as well. Bounds are domains
-- and functions rather than CHECKs of a table, because PostgreSQL parses the CHECKs of a table anew for every
-- statement: with one CHECK a column, an update of one row took three times the database's time. Functions are
-- in PL/pgSQL, which is compiled once a session; SQL functions would be inlined and parsed anew again.
--
-- Numbers are plain numeric, because numeric(14, 2) would silently round a third decimal away.
--
-- A "_write" type is one row of what a statement is sent, as an array of rows: that costs both sides less than an
-- array for each column. Numbers in it are text: the driver takes three times as long for the binary form.


-- Projects and units ----------------------------------------------------------------------------------------

create domain project_slug as text collate "C"
    check (length(value) between 2 and 100 and value ~ '^[a-z0-9]+(-[a-z0-9]+)*$');
create domain unit_code as text collate "C"
    check (length(value) between 1 and 50 and value is nfc normalized and value = btrim(value));
create domain unit_type as text check (length(value) between 1 and 100);
create domain unit_description as text check (length(value) <= 10000);
create domain area_sqm as numeric
    check (value > 0 and value <= 9999999.9999 and value = round(value, 4));
create domain amount_sar as numeric
    check (value between 0 and 999999999999.99 and value = round(value, 2));
create domain percentage as numeric check (value between 0 and 100 and value = round(value, 4));
create domain room_count as smallint check (value between 0 and 999);
create domain delivery_year as smallint check (value between 1900 and 2200);
-- json and not jsonb, which would reorder the members of an object: media are given back as sent.
create domain linked_media as json
    check (json_typeof(value) = 'array' and json_array_length(value) <= 100);
create domain unit_status as text
    check (value in ('available', 'held', 'reserved', 'sold', 'unavailable'));
create domain record_version as bigint check (value >= 1);

create table project (
    id uuid primary key,
    slug project_slug not null unique,
    name text not null check (length(name) between 1 and 200),
    version record_version not null default 1,
    created_at timestamptz(3) not null default clock_timestamp(),
    turn bigint not null default 1,
    hold_seconds float8 check (hold_seconds > 0 and hold_seconds <= 604800),
    reservation_days float8 check (reservation_days > 0 and reservation_days <= 3650),
    -- A cached layout is outdated when this has changed.
    layout_turn bigint not null default 1
);

create sequence unit_ref_number start 100001;

-- fillfactor leaves room on the page for the next version of a row (HOT updates).
create table unit (
    id uuid primary key,
    project_id uuid not null references project,
    code unit_code not null,
    -- From a sequence and never changed, so it is unique without an index that every change would pay for.
    ref text collate "C" not null default 'U-' || nextval('unit_ref_number'),
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
    -- Indexed in place of updated_at: it changes once an hour at most, so updates of a busy unit stay HOT.
    updated_hour timestamp not null
        generated always as (date_trunc('hour', updated_at at time zone 'UTC')) stored,
    -- Counts every write of a unit, also when only its booking changes (a signature). A writer stores a unit only
    -- if it still has the turn that was read; the version counts changes of the unit alone.
    turn bigint not null default 1,
    constraint unit_of_project unique (project_id, code),
    constraint archived_is_unavailable check (status = 'unavailable' or not archived),
    constraint held_has_an_end check ((status = 'held') = (hold_expires_at is not null)),
    constraint reserved_has_an_end check ((status = 'reserved') = (reserved_until is not null))
) with (fillfactor = 70);

-- Neither starts with project_id: on an empty table PostgreSQL uses any index that does to look up a code, and a
-- plan that is made once would then read the whole project for each code.
create index unit_by_status on unit (status, project_id, code);
create index unit_by_updated_hour on unit (updated_hour, project_id);
create index unit_by_end on unit (coalesce(hold_expires_at, reserved_until))
    where coalesce(hold_expires_at, reserved_until) is not null;

create type unit_write as (
    id uuid, project_id uuid, code text, type text, area_sqm text, price_sar text,
    vat_included boolean, vat_rate text, deposit_percent text, bedrooms smallint,
    bathrooms smallint, delivery_year smallint, description text, images json, files json,
    status text, archived boolean, hold_expires_at timestamptz, reserved_until timestamptz,
    version bigint, created_at timestamptz, updated_at timestamptz, found_turn bigint
);
-- Most writes are a new price or a new status; this much of a unit is enough for them.
create type unit_state_write as (
    id uuid, price_sar text, status text, archived boolean, hold_expires_at timestamptz,
    reserved_until timestamptz, version bigint, updated_at timestamptz, found_turn bigint
);

-- Where staff have placed a unit; a unit without a row is placed by its code.
create table unit_place (
    unit_id uuid primary key references unit,
    project_id uuid not null references project,
    building text check (length(building) between 1 and 50),
    floor smallint,
    position smallint
);
create index unit_place_of_project on unit_place (project_id);


-- Bookings --------------------------------------------------------------------------------------------------

create sequence booking_number maxvalue 4294967295;

create domain booking_status as text check (value in (
    'open', 'signed', 'reserved', 'sold', 'lapsed', 'cancelled', 'refund-due', 'refunded'
));

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
$$;

create function is_rid_of_its_buyer(
    status text, buyer_name text, buyer_email text, buyer_phone text, address_id uuid, visitor_id uuid
) returns boolean immutable parallel safe language plpgsql as $$
    begin
        return status not in ('open', 'signed', 'reserved')
            and num_nonnulls(buyer_name, buyer_email, buyer_phone, address_id, visitor_id) = 0;
    end
$$;

create table booking (
    number bigint primary key,
    reference text collate "C" not null,
    project_id uuid not null,
    -- No foreign key: a booking is stored by the statement that stores its unit, units are never deleted, and the
    -- check costs a tenth of the statement.
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
    -- When the buyer's personal data was erased; the facts of the sale stay.
    buyer_erased_at timestamptz(3),
    -- The unit and the terms as they were when the buyer signed.
    agreement jsonb,
    -- Of the deposit.
    payment_id text,
    constraint sound_booking check (is_sound_booking(
        status, signed_at, deposit_confirmed_at, reserved_until, closed_at, ended_at, refunded_at
    )),
    constraint erased_buyer check (
        buyer_erased_at is null
        or is_rid_of_its_buyer(status, buyer_name, buyer_email, buyer_phone, address_id, visitor_id)
    )
) with (fillfactor = 80);

-- No unit is ever held or sold twice, whatever the code believes.
create unique index one_booking_claims_a_unit on booking (unit_id)
    where status in ('open', 'signed', 'reserved', 'sold');
create unique index one_hold_per_address_slot on booking (address_id, address_slot)
    where address_slot is not null;
create unique index one_hold_per_visitor_slot on booking (visitor_id, visitor_slot)
    where visitor_slot is not null;
create unique index one_booking_per_idempotency_key on booking (unit_id, idempotency_id)
    where idempotency_id is not null;
-- Lists are ordered by time: processes draw numbers in blocks, so their order is not that of time.
create index booking_of_unit on booking (unit_id, status, ended_at);
create index booking_of_project on booking (project_id, created_at, number);
-- Of those that lapsed there are so many that the latest are found without it.
create index booking_by_status on booking (status, created_at, number) where status <> 'lapsed';
create index booking_sold on booking (project_id, closed_at) include (price_sar) where status = 'sold';

create type booking_write as (
    number bigint, reference text, project_id uuid, unit_id uuid, token_hash bytea, status text,
    price_sar text, vat_included boolean, vat_rate text, deposit_percent text,
    buyer_name text, buyer_email text, buyer_phone text,
    hold_expires_at timestamptz, reserved_until timestamptz, created_at timestamptz,
    signed_at timestamptz, deposit_confirmed_at timestamptz, closed_at timestamptz,
    ended_at timestamptz, refunded_at timestamptz,
    address_id uuid, visitor_id uuid, address_slot integer, visitor_slot integer, idempotency_id uuid,
    buyer_erased_at timestamptz, agreement text, payment_id text
);
-- What the expiry of holds and reservations writes: the unit, and the booking that ends with it.
create type release_write as (
    unit_id uuid, version bigint, at timestamptz,
    booking_number bigint, booking_status text, ended_at timestamptz
);


-- Events ----------------------------------------------------------------------------------------------------

create function is_known_transition(type text, previous_status text, status text) returns boolean
immutable parallel safe language plpgsql as $$
    begin
        return (type, previous_status, status) in (
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
        );
    end
$$;

-- Transitions are checked here and not by a trigger on unit: one write may carry two steps (a lapsed hold is
-- released, then the unit is sold), so the old and the new row prove nothing. Each step is an event.
-- The id follows from the unit and its version, which are unique; no query looks an event up by it.
create table event (
    id uuid not null,
    project_id uuid not null,
    unit_id uuid not null,
    unit_version record_version not null,
    type text not null,
    previous_status unit_status not null,
    status unit_status not null,
    booking_reference text,
    created_at timestamptz(3) not null,
    position bigint,
    -- The endpoints that it was fanned out to.
    endpoint_ids uuid[],
    constraint one_event_per_change unique (unit_id, unit_version),
    constraint booking_is_named check (
        (type in ('unit.reserved', 'unit.sold')) = (booking_reference is not null)
    ),
    constraint known_transition check (is_known_transition(type, previous_status, status))
);
alter table event replica identity using index one_event_per_change;
create unique index event_by_position on event (position) where position is not null;
create index event_of_project on event (project_id, position) where position is not null;
create index event_unnumbered on event (created_at) where position is null;

create type event_write as (
    id uuid, project_id uuid, unit_id uuid, unit_version bigint, type text, previous_status text,
    status text, booking_reference text, created_at timestamptz, unit_code text
);

-- One row: whoever locks it numbers events; its numbers are the ends of the feed.
create table event_feed (
    only_row boolean primary key default true check (only_row),
    last_position bigint not null default 0,
    trimmed_position bigint not null default 0 check (trimmed_position <= last_position)
);
insert into event_feed default values;


-- Reports ---------------------------------------------------------------------------------------------------
-- Events are summed after they have their positions, so that each is counted once however late it was committed.

-- How often units of a project took a step, hour by hour.
create table event_hour (
    project_id uuid not null,
    hour timestamptz not null,
    previous_status unit_status not null,
    status unit_status not null,
    steps bigint not null check (steps > 0),
    primary key (project_id, hour, previous_status, status)
);

-- One row: whoever locks it sums events; they are summed up to its position. units_compared_at is when it was last
-- checked that all units are counted, which reads each of them.
create table event_sums (
    only_row boolean primary key default true check (only_row),
    summed_position bigint not null default 0,
    units_compared_at timestamptz not null default '-infinity'
);
insert into event_sums default values;

-- How many units were created in an hour, by the status that they were created with. Units are never deleted, so
-- these are right as long as they add up to the number of units of the project.
create table created_hour (
    project_id uuid not null,
    hour timestamptz not null,
    status unit_status not null,
    units bigint not null check (units > 0),
    primary key (project_id, hour, status)
);


-- Endpoints and deliveries ----------------------------------------------------------------------------------

create table endpoint (
    id uuid primary key,
    url text not null check (length(url) between 1 and 2000),
    description text not null default '' check (length(description) <= 500),
    events text[] not null check (
        cardinality(events) > 0
        and events <@ array[
            'unit.held', 'unit.released', 'unit.reserved',
            'unit.sold', 'unit.available', 'unit.unavailable'
        ]
    ),
    project_ids uuid[] check (cardinality(project_ids) > 0),
    paused boolean not null default false,
    ordered boolean not null default false,
    max_in_flight smallint not null check (max_in_flight between 1 and 256),
    secret_id uuid not null,
    secret_sealed bytea not null,
    secret_made_at timestamptz(3) not null,
    -- Of the first attempt that failed since the last that succeeded.
    failing_since timestamptz(3),
    failing_cause text,
    -- When the receiver said, with 410, that it wants no more.
    gone_at timestamptz(3),
    -- Events were unselected, and some of their deliveries may still be queued.
    has_unwanted boolean not null default false,
    version record_version not null default 1,
    created_at timestamptz(3) not null default clock_timestamp(),
    updated_at timestamptz(3) not null default clock_timestamp(),
    removed_at timestamptz(3)
);

-- The same event has the same delivery id for an endpoint, however often it is delivered. In the form of a
-- version 5 UUID; by SHA-256, because PostgreSQL has no SHA-1 of its own.
create function delivery_id(event_id uuid, endpoint_id uuid) returns uuid
immutable strict parallel safe language plpgsql as $$
    declare
        digest bytea := substring(sha256(uuid_send(event_id) || uuid_send(endpoint_id)) from 1 for 16);
    begin
        digest := set_byte(digest, 6, get_byte(digest, 6) & 15 | 80);
        digest := set_byte(digest, 8, get_byte(digest, 8) & 63 | 128);
        return encode(digest, 'hex')::uuid;
    end
$$;

-- The body of a delivery is made once and stored, so that a later release changes none that was sent before.
create function delivery_body(
    id uuid, type text, created_at timestamptz, unit_id uuid, unit_code text, project_slug text,
    status text, previous_status text, booking_reference text
) returns text stable parallel safe language plpgsql as $$
    begin
        return '{"id":"' || id || '","type":"' || type || '","createdAt":"'
            || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
            || '","data":{"unit":'
            || case when unit_id is null then 'null' else
                '{"id":"' || unit_id || '","code":' || to_json(unit_code)
                || ',"projectSlug":' || to_json(project_slug)
                || ',"status":' || to_json(status)
                || ',"previousStatus":' || to_json(previous_status) || '}'
            end
            || ',"booking":'
            || case when booking_reference is null then 'null' else
                '{"reference":' || to_json(booking_reference) || '}'
            end
            || '}}';
    end
$$;

-- Deliveries that are still to be sent. Rows come and go quickly: they are vacuumed soon, and a retry finds room
-- on its own page. A claim is a row of in_flight, so that the delivery is not rewritten when it is claimed.
create table pending_delivery (
    id uuid not null,
    endpoint_id uuid not null,
    event text not null,
    project_id uuid,
    unit_id uuid,
    unit_version bigint,
    unit_code text,
    created_at timestamptz(3) not null,
    body text not null,
    series integer not null default 1,
    tried smallint not null default 0,
    attempts integer not null default 0,
    last_status_code smallint,
    last_cause text,
    due_at timestamptz(3) not null,
    -- Waits for an earlier event of its unit; due_at is only the latest time to check again.
    postponed boolean not null default false,
    -- A resend was asked for while an attempt was under way.
    again boolean not null default false,
    -- Later events of its unit may have to wait for it. False for one that is resent after it had ended.
    holds_back boolean not null default true,
    primary key (id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
create index pending_by_due on pending_delivery (endpoint_id, due_at);
create index pending_by_time on pending_delivery (endpoint_id, created_at, id);
-- What an event of the same unit waits for: the first attempt, and on ordered endpoints the retries too.
create index pending_untried on pending_delivery (endpoint_id, unit_id, unit_version)
    where holds_back and attempts = 0;
create index pending_retried on pending_delivery (endpoint_id, unit_id, unit_version)
    where holds_back and attempts > 0;
create index pending_postponed on pending_delivery (endpoint_id, unit_id, unit_version) where postponed;
-- With the two above it, finds every pending delivery of a unit.
create index pending_sent_anew on pending_delivery (unit_id) where not holds_back;

-- A row is a claim: whoever has its token may record the attempt, until the lease is over.
create table in_flight (
    delivery_id uuid primary key,
    endpoint_id uuid not null,
    token bigint not null,
    claimed_at timestamptz(3) not null,
    lease_until timestamptz(3) not null
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index in_flight_of_endpoint on in_flight (endpoint_id);
create sequence claim_token;

-- The log: a partition for each day, dropped by the day.
create table ended_delivery (
    id uuid not null,
    endpoint_id uuid not null,
    event text not null,
    project_id uuid,
    unit_id uuid,
    unit_version bigint,
    unit_code text,
    created_at timestamptz(3) not null,
    body text not null,
    series integer not null default 1,
    tried smallint not null default 0,
    attempts integer not null default 0,
    last_status_code smallint,
    last_cause text,
    status text not null check (status in ('delivered', 'failed', 'cancelled')),
    reason text,
    ended_at timestamptz(3) not null
) partition by range (ended_at);
create index ended_by_id on ended_delivery (id);
create index ended_by_time on ended_delivery (endpoint_id, created_at, id);
create index ended_of_unit on ended_delivery (unit_code, created_at, id);
create index ended_undelivered on ended_delivery (endpoint_id, created_at, id) where status <> 'delivered';
-- Announced on every page until they are seen.
create index ended_failed on ended_delivery (ended_at) where status = 'failed';
-- What ended since it was last counted. Each row is appended, so this costs next to nothing.
create index ended_by_end on ended_delivery (ended_at);

create table attempt (
    delivery_id uuid not null,
    number integer not null,
    trigger text not null check (trigger in ('first', 'retry', 'resend')),
    started_at timestamptz(3) not null,
    ended_at timestamptz(3) not null,
    duration_ms real not null,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    url text not null,
    request_headers json not null,
    secret_id uuid,
    address text,
    status_code smallint,
    response_headers json not null,
    response_body bytea not null,
    response_clipped boolean not null,
    cause text
) partition by range (ended_at);
create index attempt_of_delivery on attempt (delivery_id);

-- An attempt, and what it makes of its delivery.
create type attempt_write as (
    delivery_id uuid, number integer, trigger text, started_at timestamptz, ended_at timestamptz,
    duration_ms real, dns_ms real, connect_ms real, tls_ms real, first_byte_ms real,
    url text, request_headers json, secret_id uuid, address text, status_code smallint,
    response_headers json, response_body bytea, response_clipped boolean, cause text,
    token bigint, outcome text, gap interval
);

create table delivery_hour (
    endpoint_id uuid not null,
    hour timestamptz(3) not null,
    delivered integer not null,
    failed integer not null,
    primary key (endpoint_id, hour)
);


-- Access: keys, staff, sessions -----------------------------------------------------------------------------

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
);
create index api_key_by_time on api_key (created_at, id);

create table api_key_project (
    api_key_id uuid not null references api_key,
    project_id uuid not null references project,
    primary key (api_key_id, project_id)
);

-- email_key is the address as it is compared. The database's own lower() depends on a locale, which another server
-- may not have.
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
);
create index staff_by_start on staff (created_at, id);

-- Sessions that have ended are deleted.
create table staff_session (
    id uuid primary key,
    token_hash bytea not null unique,
    staff_id uuid not null references staff,
    address text not null,
    agent text not null,
    created_at timestamptz(3) not null default clock_timestamp(),
    last_seen_at timestamptz(3) not null default clock_timestamp(),
    notice text
) with (fillfactor = 70);
create index staff_session_of_staff on staff_session (staff_id);
create index staff_session_by_start on staff_session (created_at);

-- A link without a person makes the first admin, while there is no staff.
create table setup_link (
    token_hash bytea primary key,
    staff_id uuid unique references staff,
    expires_at timestamptz(3) not null
);

-- subject is the hash of an account or of a network address: what strangers type is not kept.
create table sign_in_attempts (
    subject bytea primary key,
    failures integer not null,
    first_at timestamptz(3) not null,
    last_at timestamptz(3) not null
) with (fillfactor = 70);
create index sign_in_attempts_by_time on sign_in_attempts (last_at);


-- The audit trail -------------------------------------------------------------------------------------------

-- Listed by time. The primary key serves that, because every change of a unit writes an entry and pays for each
-- index. The entry of an expired hold has the time at which the hold was over, before it is written.
create table audit_entry (
    id bigint generated always as identity,
    subject_id uuid not null,
    project_id uuid,
    at timestamptz(3) not null,
    actor_kind text not null,
    actor_id text,
    request_id text,
    action text not null,
    booking_reference text,
    before json,
    after json not null,
    primary key (at, id)
);
create index audit_of_subject on audit_entry (subject_id, id);

create type audit_write as (
    subject_id uuid, project_id uuid, at timestamptz, actor_kind text, actor_id text,
    request_id text, action text, booking_reference text, before json, after json
);


-- Imports ---------------------------------------------------------------------------------------------------
-- Uploaded files are kept here and not on a disk, so that every process can continue where another stopped. They
-- are stored compressed, so PostgreSQL need not try.

create table import_file (
    id uuid primary key,
    project_id uuid not null references project,
    staff_id uuid not null,
    file_name text not null,
    created_at timestamptz not null,
    contents bytea not null,
    choice bytea,
    stage text not null check (stage in ('uploaded', 'checking', 'checked', 'importing', 'imported')),
    -- Of the run that is under way; a run that was replaced finds another id here and stops.
    run_id uuid,
    -- When that run was last known to be alive.
    beat_at timestamptz(3),
    constraint chosen_before_a_run check (stage = 'uploaded' or choice is not null)
);
alter table import_file alter column contents set storage external;
create index import_file_of_staff on import_file (staff_id, created_at);
create index import_file_by_time on import_file (created_at);

create table import_part (
    import_id uuid not null references import_file on delete cascade,
    sheet smallint not null,
    part integer not null,
    rows bytea not null,
    primary key (import_id, sheet, part)
);
alter table import_part alter column rows set storage external;

create table import_result (
    import_id uuid not null references import_file on delete cascade,
    stored boolean not null,
    part integer not null,
    outcome text not null check (outcome in ('created', 'replaced', 'unchanged', 'refused')),
    rows_counted integer not null,
    findings bytea,
    primary key (import_id, stored, outcome, part)
);
alter table import_result alter column findings set storage external;


-- The installation ------------------------------------------------------------------------------------------

-- One row. The secret is known to this installation alone: nothing made with it can be guessed or recomputed
-- outside.
create table installation (
    only_row boolean primary key default true check (only_row),
    secret bytea not null default decode(
        replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'
    ),
    demo boolean not null default false,
    -- Where commands find the pages, as `serve` last announced it.
    public_url text,
    -- Null: not yet.
    deliveries_counted_upto timestamptz(3)
);
insert into installation default values;
