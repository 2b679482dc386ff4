"""Personal data of buyers can be erased; the facts of the sale stay. A unit knows all its deliveries."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS: tuple[str, ...] = (
    "alter table booking add column buyer_erased_at timestamptz(3)",
    "alter type booking_write add attribute buyer_erased_at timestamptz",
    # A function for the same reason as is_sound_booking: a CHECK is parsed anew for every statement.
    """
    create function is_rid_of_its_buyer(
        status text, buyer_name text, buyer_email text, buyer_phone text, address_id uuid, visitor_id uuid
    ) returns boolean immutable parallel safe language plpgsql as $$
        begin
            return status not in ('open', 'signed', 'reserved')
                and num_nonnulls(buyer_name, buyer_email, buyer_phone, address_id, visitor_id) = 0;
        end
    $$
    """,
    """
    alter table booking add constraint erased_buyer check (
        buyer_erased_at is null
        or is_rid_of_its_buyer(status, buyer_name, buyer_email, buyer_phone, address_id, visitor_id)
    )
    """,
    # What was sent anew is known by its unit too: the other indexes of units leave it out.
    "create index pending_sent_anew on pending_delivery (unit_id) where not holds_back",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)


def downgrade() -> None:
    raise NotImplementedError("Holdfast migrates forward only; restore a backup instead.")
