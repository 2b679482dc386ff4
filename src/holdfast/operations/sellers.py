"""The profiles of sellers: read for pages and agreements, and changed by staff."""

from __future__ import annotations

from uuid import UUID

from holdfast.domain.audit import Author, Change
from holdfast.domain.errors import InvalidInput
from holdfast.domain.seller import Seller, read_logo
from holdfast.operations.units import Units
from holdfast.storage import audit, sellers
from holdfast.storage.database import Database


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
        return await self._database.read(sellers.own, await self._project_id(slug))

    async def replace(self, slug: str | None, seller: Seller, author: Author) -> Seller:
        """Store the profile, and its logo if that is sent as a picture; the same again changes nothing."""
        project_id, logo = await self._project_id(slug), read_logo(seller.logo or "")
        async with self._database.writing() as connection:
            if logo is not None:
                seller = seller._replace(logo=logo[0])
                await sellers.insert_logo(connection, *logo)
            elif seller.logo and await sellers.find_logo(connection, seller.logo) is None:
                raise InvalidInput.at("/logo", "There is no such picture.")
            before = await sellers.own(connection, project_id, lock=True)
            if before != seller:
                await sellers.replace(connection, project_id, seller)
                change = Change.between(before, seller, Seller._fields)
                subject_id = project_id or audit.INSTALLATION_ID
                await audit.record(connection, subject_id, author, "settle", change, project_id=project_id)
        return seller

    async def find_logo(self, path: str) -> bytes | None:
        return await self._database.read(sellers.find_logo, path)

    async def _project_id(self, slug: str | None) -> UUID | None:
        return None if slug is None else await self._units.project_id(slug)
