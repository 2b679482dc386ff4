"""The profiles of sellers: read for pages and agreements, and changed by staff."""

from __future__ import annotations

from uuid import UUID

from holdfast.domain.audit import Author, Change
from holdfast.domain.errors import InvalidInput
from holdfast.domain.seller import Logo, Seller
from holdfast.operations.units import Units
from holdfast.storage import audit, sellers
from holdfast.storage.database import Database

INSTALLATION_ID = audit.INSTALLATION_ID


class Sellers:
    """A profile is that of a project by its slug, or with None that of the installation."""

    def __init__(self, database: Database, units: Units) -> None:
        self._database = database
        self._units = units

    async def effective(self, slug: str | None) -> Seller:
        """Return the profile as buyers see it: the installation's with the fields of the project."""
        return await self._database.read(sellers.effective, slug)

    async def own(self, slug: str | None) -> Seller:
        """Return only the fields that are set for the project itself."""
        project_id = await self._project_id(slug)
        return await self._database.read(sellers.own, project_id)

    async def replace(self, slug: str | None, seller: Seller, logo: Logo | None, author: Author) -> Seller:
        """Store the profile; the same again changes nothing. ``logo``: the picture, where it is a new one."""
        project_id = await self._project_id(slug)
        async with self._database.writing() as connection:
            before = await sellers.own(connection, project_id, lock=True)
            if before != seller:
                if logo is not None:
                    await sellers.insert_logo(connection, logo)
                elif seller.logo and await sellers.find_logo(connection, seller.logo) is None:
                    raise InvalidInput.at("/logo", "There is no such picture.")
                await sellers.replace(connection, project_id, seller)
                change = Change.between(before, seller, Seller._fields)
                subject_id = project_id or INSTALLATION_ID
                await audit.record(connection, subject_id, author, "settle", change, project_id=project_id)
        return seller

    async def find_logo(self, name: str) -> Logo | None:
        return await self._database.read(sellers.find_logo, name)

    async def _project_id(self, slug: str | None) -> UUID | None:
        return None if slug is None else await self._units.project_id(slug)
