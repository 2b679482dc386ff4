"""What buyers do on our pages: open a unit, come back to it, look for another one like it."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.domain.access import token_hash
from holdfast.domain.board import BoardUnit
from holdfast.domain.booking import CLAIMING, Booking
from holdfast.domain.refusals import NotAvailable, UnknownBooking
from holdfast.domain.unit import Unit, unit_id
from holdfast.operations.drafts import Requester
from holdfast.operations.inventory import Inventory
from holdfast.operations.selling import Found, Selling
from holdfast.storage import bookings, offers
from holdfast.storage.database import Database

SIMILAR_UNITS = 3


class Entered(NamedTuple):
    """A buyer has come to a booking of their own."""

    reference: str
    token: str
    is_new: bool


class Buying:
    """A visitor is known by the cookie of our pages, which opens what was made with it."""

    def __init__(self, database: Database, inventory: Inventory, selling: Selling) -> None:
        self._database = database
        self._inventory = inventory
        self._selling = selling

    async def open(self, slug: str, code: str, address: str, visitor: str, request_id: str) -> Entered:
        """The unit is held for the visitor, or is theirs already: by a second click or in another tab."""
        own = await self.own_claim(slug, code, visitor)
        if own is not None:
            return own
        requester = Requester(address, visitor, comes_back=True)
        try:
            held = await self._selling.hold(slug, code, requester, None, request_id)
        except NotAvailable:
            own = await self.own_claim(slug, code, visitor)
            if own is None:
                raise
            return own
        return Entered(held.booking.reference, held.token, is_new=True)

    async def own_claim(self, slug: str, code: str, visitor: str) -> Entered | None:
        """The visitor's booking that the unit is held, reserved or sold by."""
        wanted = unit_id(await self._inventory.project_id(slug), code)
        async with self._database.reading() as connection:
            claims = await bookings.claims_on(connection, [wanted])
        claim = claims.get(wanted)
        return None if claim is None else await self._entered(claim, visitor)

    async def live_holds(self, slug: str, visitor: str) -> list[Found]:
        """What the visitor holds in this project now, to go back to."""
        return [one for one in await self.all_live_holds(visitor) if one.project_slug == slug]

    async def all_live_holds(self, visitor: str) -> list[Found]:
        """In every project, if the visitor's cookie opens them; the first to end is the first."""
        visitor_id = await self._selling.visitor_id(visitor)
        async with self._database.reading() as connection:
            found = await bookings.held_by(connection, visitor_id)
        live = [
            one
            for one in found
            if one.booking.status in CLAIMING and await self._entered(one.booking, visitor) is not None
        ]
        return sorted(live, key=lambda one: (one.booking.hold_expires_at or one.now, one.unit_code))

    async def find(self, reference: str, visitor: str, tokens: Sequence[str]) -> tuple[Found, str]:
        """By the visitor's cookie, or by a token that came with a link; and the token that opened it."""
        found = await self._selling.find(reference)
        own = await self._selling.token_of_visitor(visitor, found.booking.reference)
        for token in (own, *tokens):
            if hmac.compare_digest(found.booking.token_hash, token_hash(token)):
                return found, token
        raise UnknownBooking(reference)

    async def now(self) -> datetime:
        """By the clock that all holds end by."""
        async with self._database.reading() as connection:
            return await bookings.now(connection)

    async def similar(self, unit: Unit) -> list[BoardUnit]:
        """Free ones, the most alike first."""
        async with self._database.reading() as connection:
            return await offers.similar(connection, unit, SIMILAR_UNITS)

    async def _entered(self, claim: Booking, visitor: str) -> Entered | None:
        token = await self._selling.token_of_visitor(visitor, claim.reference)
        if not hmac.compare_digest(claim.token_hash, token_hash(token)):
            return None
        return Entered(claim.reference, token, is_new=False)
