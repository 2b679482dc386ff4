"""Profiles of sellers, of the installation and of projects, and their logos."""

from __future__ import annotations

import json
from uuid import UUID

from holdfast.domain.seller import Logo, Seller
from holdfast.storage.database import Connection

_OWN = "select profile::text from seller where project_id is not distinct from $1 for update"
# A field of the project takes the place of the installation's.
_EFFECTIVE = """
    select (
        coalesce((select profile from seller where project_id is null), '{}') || coalesce((
            select profile from seller join project on project.id = project_id where slug = $1
        ), '{}')
    )::text
"""
_REPLACE = """
    insert into seller values ($1, $2::jsonb)
    on conflict (project_id) do update set profile = excluded.profile
"""
_INSERT_LOGO = "insert into logo (name, media_type, content) values ($1, $2, $3) on conflict do nothing"
_FIND_LOGO = "select name, media_type, content from logo where name = $1"


async def own(connection: Connection, project_id: UUID | None, *, lock: bool = False) -> Seller:
    """Return the fields of the project, or of the installation."""
    statement = _OWN if lock else _OWN.removesuffix("for update")
    return seller_from(await connection.fetchval(statement, project_id) or "{}")


async def effective(connection: Connection, slug: str | None) -> Seller:
    """Return the profile that buyers of the project see; of none, or an unknown one, the installation's."""
    return seller_from(await connection.fetchval(_EFFECTIVE, slug))


async def replace(connection: Connection, project_id: UUID | None, seller: Seller) -> None:
    await connection.execute(_REPLACE, project_id, seller_text(seller))


async def insert_logo(connection: Connection, logo: Logo) -> None:
    await connection.execute(_INSERT_LOGO, *logo)


async def find_logo(connection: Connection, name: str) -> Logo | None:
    row = await connection.fetchrow(_FIND_LOGO, name)
    return None if row is None else Logo(*row)


def seller_text(seller: Seller) -> str:
    return json.dumps(seller.set_fields, ensure_ascii=False)


def seller_from(text: str) -> Seller:
    return Seller(**json.loads(text))
