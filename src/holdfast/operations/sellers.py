"""The profiles of sellers: read for pages and agreements, and changed by staff."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from holdfast.domain.audit import Author, Change
from holdfast.domain.seller import NOBODY_NAMED, Seller, effective
from holdfast.operations.units import Units
from holdfast.storage import audit, sellers
from holdfast.storage.database import Database


class Sellers:
    """A profile is that of a project by its slug, or with None that of the installation."""

    def __init__(self, database: Database, units: Units) -> None:
        self._database = database
        self._units = units
        self._last_seen: dict[str | None, Seller] = {}

    async def effective(self, slug: str | None) -> Seller:
        """Return the profile as buyers see it: the installation's with the fields of the project."""
        profiles = await self._database.read(sellers.find, slug)
        self._last_seen |= profiles
        return effective(profiles, slug)

    def last_seen(self, slug: str | None) -> Seller:
        """Return the profile as this process saw it last, for pages that must not ask the database."""
        return effective(self._last_seen, slug)

    async def own(self, slug: str | None) -> Seller:
        """Return only the fields that are set for the project itself."""
        await self._project_id(slug)
        return (await self._database.read(sellers.find, slug)).get(slug, NOBODY_NAMED)

    async def settle(self, slug: str | None, changes: Mapping[str, Any], author: Author) -> Seller:
        """Change what is named, the logo to a ``Logo``; the same values again change nothing."""
        project_id, logo = await self._project_id(slug), changes.get("logo")
        async with self._database.writing() as connection:
            if logo is not None:
                await sellers.insert_logo(connection, logo)
                changes = {**changes, "logo": logo[0]}
            before = await sellers.find_for_update(connection, project_id)
            after = before._replace(**changes)
            if after != before:
                await sellers.update(connection, project_id, after)
                change = Change.between(before, after, Seller._fields)
                subject_id = project_id or audit.INSTALLATION_ID
                await audit.record(connection, subject_id, author, "settle", change, project_id=project_id)
        return after

    async def find_logo(self, path: str) -> bytes | None:
        return await self._database.read(sellers.find_logo, path)

    async def _project_id(self, slug: str | None) -> UUID | None:
        return None if slug is None else await self._units.project_id(slug)
