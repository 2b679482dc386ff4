"""Profiles of sellers, of the installation and of projects, and their logos."""

from __future__ import annotations

import json
from collections import ChainMap
from uuid import UUID

from holdfast.domain.seller import Seller
from holdfast.storage.database import Connection

_OWN = "select profile::text from seller where project_id is not distinct from $1"
# A field of the project takes the place of the installation's.
_EFFECTIVE = """
    select profile::text from seller left join project on project.id = project_id
    where project_id is null or slug = $1 order by project_id nulls first
"""
_REPLACE = """
    insert into seller values ($1, $2::jsonb)
    on conflict (project_id) do update set profile = excluded.profile
"""


async def own(connection: Connection, project_id: UUID | None, *, lock: bool = False) -> Seller:
    """Return the fields of the project, or of the installation."""
    statement = f"{_OWN} for update" if lock else _OWN
    return seller_from(await connection.fetchval(statement, project_id) or "{}")


async def effective(connection: Connection, slug: str | None) -> Seller:
    """Return the profile that buyers of the project see; of none, or an unknown one, the installation's."""
    profiles = [seller_from(row[0]).set_fields for row in await connection.fetch(_EFFECTIVE, slug)]
    return Seller(**dict(ChainMap(*reversed(profiles))))


async def replace(connection: Connection, project_id: UUID | None, seller: Seller) -> None:
    await connection.execute(_REPLACE, project_id, seller_text(seller))


async def insert_logo(connection: Connection, path: str, content: bytes) -> None:
    await connection.execute("insert into logo values ($1, $2) on conflict do nothing", path, content)


async def find_logo(connection: Connection, path: str) -> bytes | None:
    content: bytes | None = await connection.fetchval("select content from logo where path = $1", path)
    return content


def seller_text(seller: Seller) -> str:
    return json.dumps(seller.set_fields, ensure_ascii=False)


def seller_from(text: str) -> Seller:
    return Seller(**json.loads(text))
