"""A database that the demo has filled is marked, for good."""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.execute("alter table installation add column filled_by_demo boolean not null default false")
    # Databases that the demo filled before there was a mark.
    op.execute(
        """
        update installation set filled_by_demo = true
        where (select array_agg(slug::text) from project) = array['narjis-heights']
        """
    )
