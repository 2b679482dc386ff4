"""A revision as the next release may have it, which only adds: it is applied while this release runs.

It adds a column that may be null, an attribute to every composite type of parameters, and an index.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import asyncpg

from holdfast.storage import schema

REVISION = f"{schema.HEAD}.1"
STATEMENTS = (
    "alter table unit add column view text constraint unit_view check (length(view) <= 100)",
    "create index unit_by_view on unit (view) where view is not null",
    *(
        f"alter type {name} add attribute later_{name} text"
        for name in (
            "unit_write", "unit_state_write", "booking_write", "release_write", "event_write", "audit_write",
            "attempt_write",
        )
    ),
)  # fmt: skip
_REVERTED = (
    f"update alembic_version set version_num = '{schema.HEAD}' where version_num = '{REVISION}'",
    "alter table unit drop column if exists view",
    *(
        statement.replace(" add attribute ", " drop attribute if exists ").removesuffix(" text")
        for statement in STATEMENTS
        if statement.startswith("alter type")
    ),
)
_MODULE = """
from alembic import op

revision = {revision!r}
down_revision = {before!r}


def upgrade():
    for statement in {statements!r}:
        op.execute(statement)
"""


async def apply(owner_url: str, statements: Sequence[str] = STATEMENTS) -> list[str]:
    """Migrate as a release with this revision does, once; it waits for locks as any migration.

    Return what was applied.
    """
    with TemporaryDirectory() as folder:
        migrations = Path(folder, "migrations")
        shutil.copytree(schema._MIGRATIONS, migrations)
        (migrations / "versions" / f"{REVISION}_next.py").write_text(
            _MODULE.format(revision=REVISION, before=schema.HEAD, statements=tuple(statements))
        )
        with patch.multiple(
            schema, _MIGRATIONS=migrations, HEAD=REVISION, _REVISIONS=[*schema._REVISIONS, REVISION]
        ):
            return await schema.migrate(owner_url)


async def revert(owner_url: str) -> None:
    connection = await asyncpg.connect(owner_url)
    try:
        async with connection.transaction():
            for statement in _REVERTED:
                await connection.execute(statement)
    finally:
        await connection.close()
