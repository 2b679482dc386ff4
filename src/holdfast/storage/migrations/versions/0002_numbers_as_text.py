"""Numbers come as text.

The driver takes three times as long for PostgreSQL's binary form of a number as for its text, which
is as exact. The columns of the table stay ``numeric``.
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
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
