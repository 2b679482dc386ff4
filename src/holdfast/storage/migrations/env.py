"""Run by alembic, inside the transaction and under the lock that ``storage.schema`` has taken."""

from typing import Any

from alembic import context

_attributes = context.config.attributes


def _note(*, step: Any, **_: Any) -> None:
    _attributes["applied"].append(step.up_revision_id)


context.configure(connection=_attributes["connection"], on_version_apply=_note)
context.run_migrations()
