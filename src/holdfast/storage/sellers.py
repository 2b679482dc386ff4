"""Profiles of sellers, of the installation and of projects, and their logos."""

from __future__ import annotations

import json
from uuid import UUID

from holdfast.domain.seller import Logo, Profiles, Seller
from holdfast.storage.database import Connection

_FIND = """
    select case when project_id is not null then $1 end, profile::text from seller
    where project_id is null or project_id = (select id from project where slug = $1::text)
"""
# The first change makes the row, so that another at the same time has one to wait for.
_FIND_FOR_UPDATE = """
    insert into seller values ($1, '{}')
    on conflict (project_id) do update set profile = seller.profile returning profile::text
"""
_UPDATE = "update seller set profile = $2::jsonb where project_id is not distinct from $1"


async def find(connection: Connection, slug: str | None) -> Profiles:
    """Return the profile of the installation and that of the project, as far as there are any."""
    return {row[0]: seller_from(row[1]) for row in await connection.fetch(_FIND, slug)}


async def find_for_update(connection: Connection, project_id: UUID | None) -> Seller:
    return seller_from(await connection.fetchval(_FIND_FOR_UPDATE, project_id))


async def update(connection: Connection, project_id: UUID | None, seller: Seller) -> None:
    await connection.execute(_UPDATE, project_id, seller_text(seller))


async def insert_logo(connection: Connection, logo: Logo) -> None:
    await connection.execute("insert into logo values ($1, $2) on conflict do nothing", *logo)


async def find_logo(connection: Connection, path: str) -> bytes | None:
    content: bytes | None = await connection.fetchval("select content from logo where path = $1", path)
    return content


def seller_text(seller: Seller) -> str:
    return json.dumps(seller.set_fields, ensure_ascii=False)


def seller_from(text: str) -> Seller:
    return Seller(**json.loads(text))
