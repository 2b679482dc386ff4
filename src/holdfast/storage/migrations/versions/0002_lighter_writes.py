"""What a write need not pay for.

Numbers come as text: the driver takes three times as long for PostgreSQL's binary form, and the text
is as exact. The columns of the table stay ``numeric``.

The steps that an event may tell of stand in a function: as a CHECK of their own they were parsed anew
for every statement, which took longer than to store the events. The function is compiled once a
session. The project of an event is that of its unit, which is referenced and never moves.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

STATEMENTS = (
    "drop type unit_write, unit_state_write",
    """
    create type unit_write as (
        id uuid, project_id uuid, code text, type text, area_sqm text, price_sar text,
        vat_included boolean, vat_rate text, deposit_percent text, bedrooms smallint,
        bathrooms smallint, delivery_year smallint, description text, images json, files json,
        status text, archived boolean, hold_expires_at timestamptz, reserved_until timestamptz,
        version bigint, created_at timestamptz, updated_at timestamptz, found_version bigint
    )
    """,
    """
    create type unit_state_write as (
        id uuid, price_sar text, status text, archived boolean, hold_expires_at timestamptz,
        reserved_until timestamptz, version bigint, updated_at timestamptz, found_version bigint
    )
    """,
    # In PL/pgSQL and not in SQL, which would be inlined, and parsed anew again.
    """
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
    $$
    """,
    """
    alter table event
        drop constraint known_transition,
        drop constraint event_project_id_fkey,
        add constraint known_transition check (is_known_transition(type, previous_status, status))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
