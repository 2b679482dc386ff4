-- The schema that the first twelve revisions made, as `pg_dump --schema-only` wrote it before they became one.
CREATE DOMAIN public.amount_sar AS numeric
	CONSTRAINT amount_sar_check CHECK ((((VALUE >= (0)::numeric) AND (VALUE <= 999999999999.99)) AND (VALUE = round(VALUE, 2))));
CREATE DOMAIN public.area_sqm AS numeric
	CONSTRAINT area_sqm_check CHECK (((VALUE > (0)::numeric) AND (VALUE <= 9999999.9999) AND (VALUE = round(VALUE, 4))));
CREATE TYPE public.attempt_write AS (
	delivery_id uuid,
	number integer,
	trigger text,
	started_at timestamp with time zone,
	ended_at timestamp with time zone,
	duration_ms real,
	dns_ms real,
	connect_ms real,
	tls_ms real,
	first_byte_ms real,
	url text,
	request_headers json,
	secret_id uuid,
	address text,
	status_code smallint,
	response_headers json,
	response_body bytea,
	response_clipped boolean,
	cause text,
	token bigint,
	outcome text,
	gap interval
);
CREATE TYPE public.audit_write AS (
	subject_id uuid,
	project_id uuid,
	at timestamp with time zone,
	actor_kind text,
	actor_id text,
	request_id text,
	action text,
	booking_reference text,
	before json,
	after json
);
CREATE DOMAIN public.booking_status AS text
	CONSTRAINT booking_status_check CHECK ((VALUE = ANY (ARRAY['open'::text, 'signed'::text, 'reserved'::text, 'sold'::text, 'lapsed'::text, 'cancelled'::text, 'refund-due'::text, 'refunded'::text])));
CREATE TYPE public.booking_write AS (
	number bigint,
	reference text,
	project_id uuid,
	unit_id uuid,
	token_hash bytea,
	status text,
	price_sar text,
	vat_included boolean,
	vat_rate text,
	deposit_percent text,
	buyer_name text,
	buyer_email text,
	buyer_phone text,
	hold_expires_at timestamp with time zone,
	reserved_until timestamp with time zone,
	created_at timestamp with time zone,
	signed_at timestamp with time zone,
	deposit_confirmed_at timestamp with time zone,
	closed_at timestamp with time zone,
	ended_at timestamp with time zone,
	refunded_at timestamp with time zone,
	address_id uuid,
	visitor_id uuid,
	address_slot integer,
	visitor_slot integer,
	idempotency_id uuid,
	buyer_erased_at timestamp with time zone,
	agreement text,
	payment_id text
);
CREATE DOMAIN public.delivery_year AS smallint
	CONSTRAINT delivery_year_check CHECK (((VALUE >= 1900) AND (VALUE <= 2200)));
CREATE TYPE public.event_write AS (
	id uuid,
	project_id uuid,
	unit_id uuid,
	unit_version bigint,
	type text,
	previous_status text,
	status text,
	booking_reference text,
	created_at timestamp with time zone,
	unit_code text
);
CREATE DOMAIN public.linked_media AS json
	CONSTRAINT linked_media_check CHECK (((json_typeof(VALUE) = 'array'::text) AND (json_array_length(VALUE) <= 100)));
CREATE DOMAIN public.percentage AS numeric
	CONSTRAINT percentage_check CHECK ((((VALUE >= (0)::numeric) AND (VALUE <= (100)::numeric)) AND (VALUE = round(VALUE, 4))));
CREATE DOMAIN public.project_slug AS text COLLATE pg_catalog."C"
	CONSTRAINT project_slug_check CHECK ((((length(VALUE) >= 2) AND (length(VALUE) <= 100)) AND (VALUE ~ '^[a-z0-9]+(-[a-z0-9]+)*$'::text)));
CREATE DOMAIN public.record_version AS bigint
	CONSTRAINT record_version_check CHECK ((VALUE >= 1));
CREATE TYPE public.release_write AS (
	unit_id uuid,
	version bigint,
	at timestamp with time zone,
	booking_number bigint,
	booking_status text,
	ended_at timestamp with time zone
);
CREATE DOMAIN public.room_count AS smallint
	CONSTRAINT room_count_check CHECK (((VALUE >= 0) AND (VALUE <= 999)));
CREATE DOMAIN public.unit_code AS text COLLATE pg_catalog."C"
	CONSTRAINT unit_code_check CHECK ((((length(VALUE) >= 1) AND (length(VALUE) <= 50)) AND (VALUE IS NFC NORMALIZED) AND (VALUE = btrim(VALUE))));
CREATE DOMAIN public.unit_description AS text
	CONSTRAINT unit_description_check CHECK ((length(VALUE) <= 10000));
CREATE TYPE public.unit_state_write AS (
	id uuid,
	price_sar text,
	status text,
	archived boolean,
	hold_expires_at timestamp with time zone,
	reserved_until timestamp with time zone,
	version bigint,
	updated_at timestamp with time zone,
	found_turn bigint
);
CREATE DOMAIN public.unit_status AS text
	CONSTRAINT unit_status_check CHECK ((VALUE = ANY (ARRAY['available'::text, 'held'::text, 'reserved'::text, 'sold'::text, 'unavailable'::text])));
CREATE DOMAIN public.unit_type AS text
	CONSTRAINT unit_type_check CHECK (((length(VALUE) >= 1) AND (length(VALUE) <= 100)));
CREATE TYPE public.unit_write AS (
	id uuid,
	project_id uuid,
	code text,
	type text,
	area_sqm text,
	price_sar text,
	vat_included boolean,
	vat_rate text,
	deposit_percent text,
	bedrooms smallint,
	bathrooms smallint,
	delivery_year smallint,
	description text,
	images json,
	files json,
	status text,
	archived boolean,
	hold_expires_at timestamp with time zone,
	reserved_until timestamp with time zone,
	version bigint,
	created_at timestamp with time zone,
	updated_at timestamp with time zone,
	found_turn bigint
);
CREATE FUNCTION public.delivery_body(id uuid, type text, created_at timestamp with time zone, unit_id uuid, unit_code text, project_slug text, status text, previous_status text, booking_reference text) RETURNS text
    LANGUAGE plpgsql STABLE PARALLEL SAFE
    AS $$
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
CREATE FUNCTION public.delivery_id(event_id uuid, endpoint_id uuid) RETURNS uuid
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
    AS $$
        declare
            digest bytea := substring(sha256(uuid_send(event_id) || uuid_send(endpoint_id)) from 1 for 16);
        begin
            digest := set_byte(digest, 6, get_byte(digest, 6) & 15 | 80);
            digest := set_byte(digest, 8, get_byte(digest, 8) & 63 | 128);
            return encode(digest, 'hex')::uuid;
        end
    $$;
CREATE FUNCTION public.is_known_transition(type text, previous_status text, status text) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
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
CREATE FUNCTION public.is_rid_of_its_buyer(status text, buyer_name text, buyer_email text, buyer_phone text, address_id uuid, visitor_id uuid) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
        begin
            return status not in ('open', 'signed', 'reserved')
                and num_nonnulls(buyer_name, buyer_email, buyer_phone, address_id, visitor_id) = 0;
        end
    $$;
CREATE FUNCTION public.is_sound_booking(status text, signed_at timestamp with time zone, deposit_confirmed_at timestamp with time zone, reserved_until timestamp with time zone, closed_at timestamp with time zone, ended_at timestamp with time zone, refunded_at timestamp with time zone) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
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
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.api_key (
    id uuid NOT NULL,
    name text NOT NULL,
    hint text NOT NULL,
    key_hash bytea NOT NULL,
    scopes text[] NOT NULL,
    limited_to_projects boolean NOT NULL,
    created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp(3) with time zone,
    revoked_at timestamp(3) with time zone,
    last_used_at timestamp(3) with time zone,
    CONSTRAINT api_key_key_hash_check CHECK ((octet_length(key_hash) = 32)),
    CONSTRAINT api_key_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT api_key_scopes_check CHECK (((cardinality(scopes) > 0) AND (scopes <@ ARRAY['integration'::text, 'payments'::text, 'backoffice'::text, 'admin'::text])))
);
CREATE TABLE public.api_key_project (
    api_key_id uuid NOT NULL,
    project_id uuid NOT NULL
);
CREATE TABLE public.attempt (
    delivery_id uuid NOT NULL,
    number integer NOT NULL,
    trigger text NOT NULL,
    started_at timestamp(3) with time zone NOT NULL,
    ended_at timestamp(3) with time zone NOT NULL,
    duration_ms real NOT NULL,
    dns_ms real,
    connect_ms real,
    tls_ms real,
    first_byte_ms real,
    url text NOT NULL,
    request_headers json NOT NULL,
    secret_id uuid,
    address text,
    status_code smallint,
    response_headers json NOT NULL,
    response_body bytea NOT NULL,
    response_clipped boolean NOT NULL,
    cause text,
    CONSTRAINT attempt_trigger_check CHECK ((trigger = ANY (ARRAY['first'::text, 'retry'::text, 'resend'::text])))
)
PARTITION BY RANGE (ended_at);
CREATE TABLE public.audit_entry (
    id bigint NOT NULL,
    subject_id uuid NOT NULL,
    project_id uuid,
    at timestamp(3) with time zone NOT NULL,
    actor_kind text NOT NULL,
    actor_id text,
    request_id text,
    action text NOT NULL,
    booking_reference text,
    before json,
    after json NOT NULL
);
ALTER TABLE public.audit_entry ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.audit_entry_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.booking (
    number bigint NOT NULL,
    reference text NOT NULL COLLATE pg_catalog."C",
    project_id uuid NOT NULL,
    unit_id uuid NOT NULL,
    token_hash bytea NOT NULL,
    status public.booking_status NOT NULL,
    price_sar public.amount_sar NOT NULL,
    vat_included boolean,
    vat_rate public.percentage,
    deposit_percent public.percentage,
    buyer_name text,
    buyer_email text,
    buyer_phone text,
    hold_expires_at timestamp(3) with time zone,
    reserved_until timestamp(3) with time zone,
    created_at timestamp(3) with time zone NOT NULL,
    signed_at timestamp(3) with time zone,
    deposit_confirmed_at timestamp(3) with time zone,
    closed_at timestamp(3) with time zone,
    ended_at timestamp(3) with time zone,
    refunded_at timestamp(3) with time zone,
    address_id uuid,
    visitor_id uuid,
    address_slot integer,
    visitor_slot integer,
    idempotency_id uuid,
    buyer_erased_at timestamp(3) with time zone,
    agreement jsonb,
    payment_id text,
    CONSTRAINT erased_buyer CHECK (((buyer_erased_at IS NULL) OR public.is_rid_of_its_buyer((status)::text, buyer_name, buyer_email, buyer_phone, address_id, visitor_id))),
    CONSTRAINT sound_booking CHECK (public.is_sound_booking((status)::text, signed_at, deposit_confirmed_at, reserved_until, closed_at, ended_at, refunded_at))
)
WITH (fillfactor='80');
CREATE SEQUENCE public.booking_number
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    MAXVALUE 4294967295
    CACHE 1;
CREATE SEQUENCE public.claim_token
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.created_hour (
    project_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    status public.unit_status NOT NULL,
    units bigint NOT NULL,
    CONSTRAINT created_hour_units_check CHECK ((units > 0))
);
CREATE TABLE public.delivery_hour (
    endpoint_id uuid NOT NULL,
    hour timestamp(3) with time zone NOT NULL,
    delivered integer NOT NULL,
    failed integer NOT NULL
);
CREATE TABLE public.ended_delivery (
    id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    event text NOT NULL,
    project_id uuid,
    unit_id uuid,
    unit_version bigint,
    unit_code text,
    created_at timestamp(3) with time zone NOT NULL,
    body text NOT NULL,
    series integer DEFAULT 1 NOT NULL,
    tried smallint DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_status_code smallint,
    last_cause text,
    status text NOT NULL,
    reason text,
    ended_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT ended_delivery_status_check CHECK ((status = ANY (ARRAY['delivered'::text, 'failed'::text, 'cancelled'::text])))
)
PARTITION BY RANGE (ended_at);
CREATE TABLE public.endpoint (
    id uuid NOT NULL,
    url text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    events text[] NOT NULL,
    project_ids uuid[],
    paused boolean DEFAULT false NOT NULL,
    ordered boolean DEFAULT false NOT NULL,
    max_in_flight smallint NOT NULL,
    secret_id uuid NOT NULL,
    secret_sealed bytea NOT NULL,
    secret_made_at timestamp(3) with time zone NOT NULL,
    failing_since timestamp(3) with time zone,
    failing_cause text,
    gone_at timestamp(3) with time zone,
    has_unwanted boolean DEFAULT false NOT NULL,
    version public.record_version DEFAULT 1 NOT NULL,
    created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    removed_at timestamp(3) with time zone,
    CONSTRAINT endpoint_description_check CHECK ((length(description) <= 500)),
    CONSTRAINT endpoint_events_check CHECK (((cardinality(events) > 0) AND (events <@ ARRAY['unit.held'::text, 'unit.released'::text, 'unit.reserved'::text, 'unit.sold'::text, 'unit.available'::text, 'unit.unavailable'::text]))),
    CONSTRAINT endpoint_max_in_flight_check CHECK (((max_in_flight >= 1) AND (max_in_flight <= 256))),
    CONSTRAINT endpoint_project_ids_check CHECK ((cardinality(project_ids) > 0)),
    CONSTRAINT endpoint_url_check CHECK (((length(url) >= 1) AND (length(url) <= 2000)))
);
CREATE TABLE public.event (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    unit_id uuid NOT NULL,
    unit_version public.record_version NOT NULL,
    type text NOT NULL,
    previous_status public.unit_status NOT NULL,
    status public.unit_status NOT NULL,
    booking_reference text,
    created_at timestamp(3) with time zone NOT NULL,
    "position" bigint,
    endpoint_ids uuid[],
    CONSTRAINT booking_is_named CHECK (((type = ANY (ARRAY['unit.reserved'::text, 'unit.sold'::text])) = (booking_reference IS NOT NULL))),
    CONSTRAINT known_transition CHECK (public.is_known_transition(type, (previous_status)::text, (status)::text))
);
CREATE TABLE public.event_feed (
    only_row boolean DEFAULT true NOT NULL,
    last_position bigint DEFAULT 0 NOT NULL,
    trimmed_position bigint DEFAULT 0 NOT NULL,
    CONSTRAINT event_feed_check CHECK ((trimmed_position <= last_position)),
    CONSTRAINT event_feed_only_row_check CHECK (only_row)
);
CREATE TABLE public.event_hour (
    project_id uuid NOT NULL,
    hour timestamp with time zone NOT NULL,
    previous_status public.unit_status NOT NULL,
    status public.unit_status NOT NULL,
    steps bigint NOT NULL,
    CONSTRAINT event_hour_steps_check CHECK ((steps > 0))
);
CREATE TABLE public.event_sums (
    only_row boolean DEFAULT true NOT NULL,
    summed_position bigint DEFAULT 0 NOT NULL,
    units_compared_at timestamp with time zone DEFAULT '-infinity'::timestamp with time zone NOT NULL,
    CONSTRAINT event_sums_only_row_check CHECK (only_row)
);
CREATE TABLE public.import_file (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    staff_id uuid NOT NULL,
    file_name text NOT NULL,
    created_at timestamp with time zone NOT NULL,
    contents bytea NOT NULL,
    choice bytea,
    stage text NOT NULL,
    run_id uuid,
    beat_at timestamp(3) with time zone,
    CONSTRAINT chosen_before_a_run CHECK (((stage = 'uploaded'::text) OR (choice IS NOT NULL))),
    CONSTRAINT import_file_stage_check CHECK ((stage = ANY (ARRAY['uploaded'::text, 'checking'::text, 'checked'::text, 'importing'::text, 'imported'::text])))
);
ALTER TABLE ONLY public.import_file ALTER COLUMN contents SET STORAGE EXTERNAL;
CREATE TABLE public.import_part (
    import_id uuid NOT NULL,
    sheet smallint NOT NULL,
    part integer NOT NULL,
    rows bytea NOT NULL
);
ALTER TABLE ONLY public.import_part ALTER COLUMN rows SET STORAGE EXTERNAL;
CREATE TABLE public.import_result (
    import_id uuid NOT NULL,
    stored boolean NOT NULL,
    part integer NOT NULL,
    outcome text NOT NULL,
    rows_counted integer NOT NULL,
    findings bytea,
    CONSTRAINT import_result_outcome_check CHECK ((outcome = ANY (ARRAY['created'::text, 'replaced'::text, 'unchanged'::text, 'refused'::text])))
);
ALTER TABLE ONLY public.import_result ALTER COLUMN findings SET STORAGE EXTERNAL;
CREATE TABLE public.in_flight (
    delivery_id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    token bigint NOT NULL,
    claimed_at timestamp(3) with time zone NOT NULL,
    lease_until timestamp(3) with time zone NOT NULL
)
WITH (autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000');
CREATE TABLE public.installation (
    only_row boolean DEFAULT true NOT NULL,
    secret bytea DEFAULT decode(replace(((gen_random_uuid())::text || (gen_random_uuid())::text), '-'::text, ''::text), 'hex'::text) NOT NULL,
    demo boolean DEFAULT false NOT NULL,
    public_url text,
    deliveries_counted_upto timestamp(3) with time zone,
    CONSTRAINT installation_only_row_check CHECK (only_row)
);
CREATE TABLE public.pending_delivery (
    id uuid NOT NULL,
    endpoint_id uuid NOT NULL,
    event text NOT NULL,
    project_id uuid,
    unit_id uuid,
    unit_version bigint,
    unit_code text,
    created_at timestamp(3) with time zone NOT NULL,
    body text NOT NULL,
    series integer DEFAULT 1 NOT NULL,
    tried smallint DEFAULT 0 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_status_code smallint,
    last_cause text,
    due_at timestamp(3) with time zone NOT NULL,
    postponed boolean DEFAULT false NOT NULL,
    again boolean DEFAULT false NOT NULL,
    holds_back boolean DEFAULT true NOT NULL
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02', autovacuum_vacuum_threshold='2000');
CREATE TABLE public.project (
    id uuid NOT NULL,
    slug public.project_slug NOT NULL,
    name text NOT NULL,
    version public.record_version DEFAULT 1 NOT NULL,
    created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    turn bigint DEFAULT 1 NOT NULL,
    hold_seconds double precision,
    reservation_days double precision,
    layout_turn bigint DEFAULT 1 NOT NULL,
    CONSTRAINT project_hold_seconds_check CHECK (((hold_seconds > (0)::double precision) AND (hold_seconds <= (604800)::double precision))),
    CONSTRAINT project_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT project_reservation_days_check CHECK (((reservation_days > (0)::double precision) AND (reservation_days <= (3650)::double precision)))
);
CREATE TABLE public.setup_link (
    token_hash bytea NOT NULL,
    staff_id uuid,
    expires_at timestamp(3) with time zone NOT NULL
);
CREATE TABLE public.sign_in_attempts (
    subject bytea NOT NULL,
    failures integer NOT NULL,
    first_at timestamp(3) with time zone NOT NULL,
    last_at timestamp(3) with time zone NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE public.staff (
    id uuid NOT NULL,
    email text NOT NULL,
    email_key text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL,
    role text NOT NULL,
    password_hash text,
    second_factor_sealed bytea,
    second_factor_step bigint DEFAULT 0 NOT NULL,
    offered_factor_sealed bytea,
    language text DEFAULT 'en'::text NOT NULL,
    digits text DEFAULT 'latn'::text NOT NULL,
    theme text DEFAULT 'auto'::text NOT NULL,
    created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    disabled_at timestamp(3) with time zone,
    last_signed_in_at timestamp(3) with time zone,
    failures_seen_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT staff_digits_check CHECK ((digits = ANY (ARRAY['latn'::text, 'arab'::text]))),
    CONSTRAINT staff_email_check CHECK (((length(email) >= 3) AND (length(email) <= 254))),
    CONSTRAINT staff_language_check CHECK ((language = ANY (ARRAY['en'::text, 'ar'::text]))),
    CONSTRAINT staff_name_check CHECK (((length(name) >= 1) AND (length(name) <= 200))),
    CONSTRAINT staff_role_check CHECK ((role = ANY (ARRAY['admin'::text, 'integrator'::text, 'sales'::text, 'viewer'::text]))),
    CONSTRAINT staff_theme_check CHECK ((theme = ANY (ARRAY['auto'::text, 'light'::text, 'dark'::text])))
);
CREATE TABLE public.staff_session (
    id uuid NOT NULL,
    token_hash bytea NOT NULL,
    staff_id uuid NOT NULL,
    address text NOT NULL,
    agent text NOT NULL,
    created_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    last_seen_at timestamp(3) with time zone DEFAULT clock_timestamp() NOT NULL,
    notice text
)
WITH (fillfactor='70');
CREATE SEQUENCE public.unit_ref_number
    START WITH 100001
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE public.unit (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    code public.unit_code NOT NULL,
    ref text DEFAULT ('U-'::text || nextval('public.unit_ref_number'::regclass)) NOT NULL COLLATE pg_catalog."C",
    type public.unit_type NOT NULL,
    area_sqm public.area_sqm NOT NULL,
    price_sar public.amount_sar NOT NULL,
    vat_included boolean,
    vat_rate public.percentage,
    deposit_percent public.percentage,
    bedrooms public.room_count,
    bathrooms public.room_count,
    delivery_year public.delivery_year,
    description public.unit_description,
    images public.linked_media NOT NULL,
    files public.linked_media NOT NULL,
    status public.unit_status NOT NULL,
    archived boolean DEFAULT false NOT NULL,
    hold_expires_at timestamp(3) with time zone,
    reserved_until timestamp(3) with time zone,
    version public.record_version NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    updated_at timestamp(3) with time zone NOT NULL,
    updated_hour timestamp without time zone GENERATED ALWAYS AS (date_trunc('hour'::text, (updated_at AT TIME ZONE 'UTC'::text))) STORED NOT NULL,
    turn bigint DEFAULT 1 NOT NULL,
    CONSTRAINT archived_is_unavailable CHECK ((((status)::text = 'unavailable'::text) OR (NOT archived))),
    CONSTRAINT held_has_an_end CHECK ((((status)::text = 'held'::text) = (hold_expires_at IS NOT NULL))),
    CONSTRAINT reserved_has_an_end CHECK ((((status)::text = 'reserved'::text) = (reserved_until IS NOT NULL)))
)
WITH (fillfactor='70');
CREATE TABLE public.unit_place (
    unit_id uuid NOT NULL,
    project_id uuid NOT NULL,
    building text,
    floor smallint,
    "position" smallint,
    CONSTRAINT unit_place_building_check CHECK (((length(building) >= 1) AND (length(building) <= 50)))
);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_key_hash_key UNIQUE (key_hash);
ALTER TABLE ONLY public.api_key
    ADD CONSTRAINT api_key_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.api_key_project
    ADD CONSTRAINT api_key_project_pkey PRIMARY KEY (api_key_id, project_id);
ALTER TABLE ONLY public.audit_entry
    ADD CONSTRAINT audit_entry_pkey PRIMARY KEY (at, id);
ALTER TABLE ONLY public.booking
    ADD CONSTRAINT booking_pkey PRIMARY KEY (number);
ALTER TABLE ONLY public.created_hour
    ADD CONSTRAINT created_hour_pkey PRIMARY KEY (project_id, hour, status);
ALTER TABLE ONLY public.delivery_hour
    ADD CONSTRAINT delivery_hour_pkey PRIMARY KEY (endpoint_id, hour);
ALTER TABLE ONLY public.endpoint
    ADD CONSTRAINT endpoint_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.event_feed
    ADD CONSTRAINT event_feed_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.event_hour
    ADD CONSTRAINT event_hour_pkey PRIMARY KEY (project_id, hour, previous_status, status);
ALTER TABLE ONLY public.event_sums
    ADD CONSTRAINT event_sums_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.import_file
    ADD CONSTRAINT import_file_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.import_part
    ADD CONSTRAINT import_part_pkey PRIMARY KEY (import_id, sheet, part);
ALTER TABLE ONLY public.import_result
    ADD CONSTRAINT import_result_pkey PRIMARY KEY (import_id, stored, outcome, part);
ALTER TABLE ONLY public.in_flight
    ADD CONSTRAINT in_flight_pkey PRIMARY KEY (delivery_id);
ALTER TABLE ONLY public.installation
    ADD CONSTRAINT installation_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY public.event
    ADD CONSTRAINT one_event_per_change UNIQUE (unit_id, unit_version);
ALTER TABLE ONLY public.event REPLICA IDENTITY USING INDEX one_event_per_change;
ALTER TABLE ONLY public.staff
    ADD CONSTRAINT one_staff_per_email UNIQUE (email_key);
ALTER TABLE ONLY public.pending_delivery
    ADD CONSTRAINT pending_delivery_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.project
    ADD CONSTRAINT project_slug_key UNIQUE (slug);
ALTER TABLE ONLY public.setup_link
    ADD CONSTRAINT setup_link_pkey PRIMARY KEY (token_hash);
ALTER TABLE ONLY public.setup_link
    ADD CONSTRAINT setup_link_staff_id_key UNIQUE (staff_id);
ALTER TABLE ONLY public.sign_in_attempts
    ADD CONSTRAINT sign_in_attempts_pkey PRIMARY KEY (subject);
ALTER TABLE ONLY public.staff
    ADD CONSTRAINT staff_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.staff_session
    ADD CONSTRAINT staff_session_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.staff_session
    ADD CONSTRAINT staff_session_token_hash_key UNIQUE (token_hash);
ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_of_project UNIQUE (project_id, code);
ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.unit_place
    ADD CONSTRAINT unit_place_pkey PRIMARY KEY (unit_id);
CREATE INDEX api_key_by_time ON public.api_key USING btree (created_at, id);
CREATE INDEX attempt_of_delivery ON ONLY public.attempt USING btree (delivery_id);
CREATE INDEX audit_of_subject ON public.audit_entry USING btree (subject_id, id);
CREATE INDEX booking_by_status ON public.booking USING btree (status, created_at, number) WHERE ((status)::text <> 'lapsed'::text);
CREATE INDEX booking_of_project ON public.booking USING btree (project_id, created_at, number);
CREATE INDEX booking_of_unit ON public.booking USING btree (unit_id, status, ended_at);
CREATE INDEX booking_sold ON public.booking USING btree (project_id, closed_at) INCLUDE (price_sar) WHERE ((status)::text = 'sold'::text);
CREATE INDEX ended_by_end ON ONLY public.ended_delivery USING btree (ended_at);
CREATE INDEX ended_by_id ON ONLY public.ended_delivery USING btree (id);
CREATE INDEX ended_by_time ON ONLY public.ended_delivery USING btree (endpoint_id, created_at, id);
CREATE INDEX ended_failed ON ONLY public.ended_delivery USING btree (ended_at) WHERE (status = 'failed'::text);
CREATE INDEX ended_of_unit ON ONLY public.ended_delivery USING btree (unit_code, created_at, id);
CREATE INDEX ended_undelivered ON ONLY public.ended_delivery USING btree (endpoint_id, created_at, id) WHERE (status <> 'delivered'::text);
CREATE UNIQUE INDEX event_by_position ON public.event USING btree ("position") WHERE ("position" IS NOT NULL);
CREATE INDEX event_of_project ON public.event USING btree (project_id, "position") WHERE ("position" IS NOT NULL);
CREATE INDEX event_unnumbered ON public.event USING btree (created_at) WHERE ("position" IS NULL);
CREATE INDEX import_file_by_time ON public.import_file USING btree (created_at);
CREATE INDEX import_file_of_staff ON public.import_file USING btree (staff_id, created_at);
CREATE INDEX in_flight_of_endpoint ON public.in_flight USING btree (endpoint_id);
CREATE UNIQUE INDEX one_booking_claims_a_unit ON public.booking USING btree (unit_id) WHERE ((status)::text = ANY (ARRAY['open'::text, 'signed'::text, 'reserved'::text, 'sold'::text]));
CREATE UNIQUE INDEX one_booking_per_idempotency_key ON public.booking USING btree (unit_id, idempotency_id) WHERE (idempotency_id IS NOT NULL);
CREATE UNIQUE INDEX one_hold_per_address_slot ON public.booking USING btree (address_id, address_slot) WHERE (address_slot IS NOT NULL);
CREATE UNIQUE INDEX one_hold_per_visitor_slot ON public.booking USING btree (visitor_id, visitor_slot) WHERE (visitor_slot IS NOT NULL);
CREATE INDEX pending_by_due ON public.pending_delivery USING btree (endpoint_id, due_at);
CREATE INDEX pending_by_time ON public.pending_delivery USING btree (endpoint_id, created_at, id);
CREATE INDEX pending_postponed ON public.pending_delivery USING btree (endpoint_id, unit_id, unit_version) WHERE postponed;
CREATE INDEX pending_retried ON public.pending_delivery USING btree (endpoint_id, unit_id, unit_version) WHERE (holds_back AND (attempts > 0));
CREATE INDEX pending_sent_anew ON public.pending_delivery USING btree (unit_id) WHERE (NOT holds_back);
CREATE INDEX pending_untried ON public.pending_delivery USING btree (endpoint_id, unit_id, unit_version) WHERE (holds_back AND (attempts = 0));
CREATE INDEX sign_in_attempts_by_time ON public.sign_in_attempts USING btree (last_at);
CREATE INDEX staff_by_start ON public.staff USING btree (created_at, id);
CREATE INDEX staff_session_by_start ON public.staff_session USING btree (created_at);
CREATE INDEX staff_session_of_staff ON public.staff_session USING btree (staff_id);
CREATE INDEX unit_by_end ON public.unit USING btree (COALESCE(hold_expires_at, reserved_until)) WHERE (COALESCE(hold_expires_at, reserved_until) IS NOT NULL);
CREATE INDEX unit_by_status ON public.unit USING btree (status, project_id, code);
CREATE INDEX unit_by_updated_hour ON public.unit USING btree (updated_hour, project_id);
CREATE INDEX unit_place_of_project ON public.unit_place USING btree (project_id);
ALTER TABLE ONLY public.api_key_project
    ADD CONSTRAINT api_key_project_api_key_id_fkey FOREIGN KEY (api_key_id) REFERENCES public.api_key(id);
ALTER TABLE ONLY public.api_key_project
    ADD CONSTRAINT api_key_project_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);
ALTER TABLE ONLY public.import_file
    ADD CONSTRAINT import_file_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);
ALTER TABLE ONLY public.import_part
    ADD CONSTRAINT import_part_import_id_fkey FOREIGN KEY (import_id) REFERENCES public.import_file(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.import_result
    ADD CONSTRAINT import_result_import_id_fkey FOREIGN KEY (import_id) REFERENCES public.import_file(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.setup_link
    ADD CONSTRAINT setup_link_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id);
ALTER TABLE ONLY public.staff_session
    ADD CONSTRAINT staff_session_staff_id_fkey FOREIGN KEY (staff_id) REFERENCES public.staff(id);
ALTER TABLE ONLY public.unit_place
    ADD CONSTRAINT unit_place_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);
ALTER TABLE ONLY public.unit_place
    ADD CONSTRAINT unit_place_unit_id_fkey FOREIGN KEY (unit_id) REFERENCES public.unit(id);
ALTER TABLE ONLY public.unit
    ADD CONSTRAINT unit_project_id_fkey FOREIGN KEY (project_id) REFERENCES public.project(id);
