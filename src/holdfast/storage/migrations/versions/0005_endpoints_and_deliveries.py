"""Endpoints, and what is delivered to them.

What is still to be sent stands in one small table, what ended in the log, which has a part for each day
and is forgotten by the day. A claim is a row of its own, so that the delivery, body and all, is not written
anew each time that somebody takes it up.
"""

from alembic import op

revision = "0005"
down_revision = "0004"

_OF_A_DELIVERY = """
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
    last_cause text
"""

STATEMENTS = (
    """
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
    )
    """,
    # Whom it was fanned out to: the feed of an endpoint, and what its deliveries are held against.
    "alter table event add column endpoint_ids uuid[]",
    "drop type event_write",
    """
    create type event_write as (
        id uuid, project_id uuid, unit_id uuid, unit_version bigint, type text, previous_status text,
        status text, booking_reference text, created_at timestamptz, unit_code text
    )
    """,
    "alter table audit_entry alter column project_id drop not null",
    # The same event has the same delivery for an endpoint, however often it is asked for. In the form of a
    # version 5 UUID; by SHA-256, because PostgreSQL has no SHA-1 of its own.
    """
    create function delivery_id(event_id uuid, endpoint_id uuid) returns uuid
    immutable strict parallel safe language plpgsql as $$
        declare
            digest bytea := substring(sha256(uuid_send(event_id) || uuid_send(endpoint_id)) from 1 for 16);
        begin
            digest := set_byte(digest, 6, get_byte(digest, 6) & 15 | 80);
            digest := set_byte(digest, 8, get_byte(digest, 8) & 63 | 128);
            return encode(digest, 'hex')::uuid;
        end
    $$
    """,
    # Made once and stored: a later release that writes bodies otherwise changes none that was sent before.
    """
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
    $$
    """,
    # Rows come and go quickly: they are vacuumed soon, and a retry finds room on its own page.
    f"""
    create table pending_delivery (
        {_OF_A_DELIVERY},
        due_at timestamptz(3) not null,
        -- Waits for an earlier event of its unit, to which due_at is only the latest time to look again.
        postponed boolean not null default false,
        -- Somebody wants it sent anew, and it is on its way at this moment.
        again boolean not null default false,
        -- Later events of its unit may have to wait for it; they need not for one that had ended before.
        holds_back boolean not null default true,
        primary key (id)
    ) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000)
    """,
    "create index pending_by_due on pending_delivery (endpoint_id, due_at)",
    # Whom an event of the same unit waits for: the first attempt, or on ordered endpoints the retries too.
    """
    create index pending_untried on pending_delivery (endpoint_id, unit_id, unit_version)
        where holds_back and attempts = 0
    """,
    """
    create index pending_retried on pending_delivery (endpoint_id, unit_id, unit_version)
        where holds_back and attempts > 0
    """,
    "create index pending_by_time on pending_delivery (endpoint_id, created_at, id)",
    """
    create index pending_postponed on pending_delivery (endpoint_id, unit_id, unit_version) where postponed
    """,
    # A row is a claim: who has its token may record the attempt, until the lease is over.
    """
    create table in_flight (
        delivery_id uuid primary key,
        endpoint_id uuid not null,
        token bigint not null,
        claimed_at timestamptz(3) not null,
        lease_until timestamptz(3) not null
    ) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)
    """,
    "create index in_flight_of_endpoint on in_flight (endpoint_id)",
    "create sequence claim_token",
    f"""
    create table ended_delivery (
        {_OF_A_DELIVERY},
        status text not null check (status in ('delivered', 'failed', 'cancelled')),
        reason text,
        ended_at timestamptz(3) not null
    ) partition by range (ended_at)
    """,
    "create index ended_by_id on ended_delivery (id)",
    "create index ended_by_time on ended_delivery (endpoint_id, created_at, id)",
    "create index ended_of_unit on ended_delivery (unit_code, created_at, id)",
    """
    create index ended_undelivered on ended_delivery (endpoint_id, created_at, id) where status <> 'delivered'
    """,
    """
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
    ) partition by range (ended_at)
    """,
    "create index attempt_of_delivery on attempt (delivery_id)",
    "alter table installation add column demo boolean not null default false",
    # What a record sends for each attempt: the attempt, and what it makes of its delivery.
    """
    create type attempt_write as (
        delivery_id uuid, number integer, trigger text, started_at timestamptz, ended_at timestamptz,
        duration_ms real, dns_ms real, connect_ms real, tls_ms real, first_byte_ms real,
        url text, request_headers json, secret_id uuid, address text, status_code smallint,
        response_headers json, response_body bytea, response_clipped boolean, cause text,
        token bigint, outcome text, gap interval
    )
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
