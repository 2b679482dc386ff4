"""Run by alembic, inside the transaction and under the lock that ``storage.schema`` has taken."""

from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

_attributes = context.config.attributes


def _note(ctx: MigrationContext, step: MigrationInfo, heads: Any, run_args: Any) -> None:
    _attributes["applied"].append(step.up_revision_id)


context.configure(connection=_attributes["connection"], on_version_apply=_note)
context.run_migrations()
