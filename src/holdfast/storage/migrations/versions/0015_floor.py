"""Units have a floor, and cached layouts are outdated when it changes."""

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENTS: tuple[str, ...] = (
    # Not a domain, for which PostgreSQL would write the whole table again.
    "alter table unit add column floor smallint constraint unit_floor check (floor between -9 and 200)",
    "drop type unit_write",
    """
    create type unit_write as (
        id uuid, project_id uuid, code text, type text, area_sqm text, price_sar text,
        vat_included boolean, vat_rate text, deposit_percent text, bedrooms smallint,
        bathrooms smallint, delivery_year smallint, floor smallint, description text, images json, files json,
        status text, archived boolean, hold_expires_at timestamptz, reserved_until timestamptz,
        version bigint, created_at timestamptz, updated_at timestamptz, found_turn bigint
    )
    """,
    """
    create function outdate_layout() returns trigger language plpgsql as $$
    begin
        update project set layout_turn = layout_turn + 1
        where id = new.project_id and xmin <> pg_current_xact_id()::xid;
        return null;
    end $$
    """,
    # Once in a transaction, however many units it changes. A new unit needs none: a cached layout is checked
    # against the number of units.
    """
    create trigger floor_changed after update of floor on unit for each row
        when (old.floor is distinct from new.floor) execute function outdate_layout()
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
