"""What is written down of changes of staff: never a secret, never how somebody likes their pages."""

from __future__ import annotations

from uuid import UUID

from holdfast.domain.audit import Author, Change, Entry
from holdfast.domain.staff import Staff
from holdfast.storage import audit
from holdfast.storage.database import Connection

_NAMES = ("name", "role", "disabled_at")


async def record(connection: Connection, staff_id: UUID, author: Author, action: str, change: Change) -> None:
    at = await audit.now(connection)
    await audit.insert(connection, Entry(staff_id, None, at, author, action, None, change))


def creation(person: Staff) -> Change:
    return Change(None, {"email": person.email, "name": person.name, "role": person.role})


def difference(before: Staff, after: Staff) -> Change:
    names = [name for name in _NAMES if getattr(before, name) != getattr(after, name)]
    return Change(
        {name: getattr(before, name) for name in names}, {name: getattr(after, name) for name in names}
    )
