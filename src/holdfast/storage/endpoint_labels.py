"""What endpoints are called, removed ones too: the log speaks of them for as long as it is kept."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlsplit
from uuid import UUID

from holdfast.storage.database import Connection

LISTED = 200

_LIST = f"""
    select id, url, description, removed_at is not null from endpoint
    order by removed_at is not null, created_at, id limit {LISTED}
"""
_FIND = "select id, url, description, removed_at is not null from endpoint where id = any($1::uuid[])"


class EndpointLabel(NamedTuple):
    id: UUID
    url: str
    description: str
    is_removed: bool

    @property
    def name(self) -> str:
        return name_of(self.url, self.description)


def name_of(url: str, description: str) -> str:
    """What people call an endpoint by."""
    try:
        return description or urlsplit(url).netloc
    except ValueError:
        return url


async def listed(connection: Connection) -> list[EndpointLabel]:
    """To choose from; those that are still there first."""
    return [EndpointLabel(*row) for row in await connection.fetch(_LIST)]


async def of_ids(connection: Connection, ids: list[UUID]) -> dict[UUID, EndpointLabel]:
    return {row[0]: EndpointLabel(*row) for row in await connection.fetch(_FIND, ids)}
