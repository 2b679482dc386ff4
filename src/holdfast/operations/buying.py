"""What buyers do on our pages: open a unit, come back to it, look for another one like it."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple

from holdfast.domain.api_key import token_hash
from holdfast.domain.booking import CLAIMING, Booking
from holdfast.domain.errors import NotAvailable, UnknownBooking
from holdfast.domain.layout import BoardUnit
from holdfast.domain.unit import Unit, unit_id
from holdfast.operations.drafts import Requester
from holdfast.operations.inventory import Inventory
from holdfast.operations.selling import Found, Selling
from holdfast.operations.shared_reads import SharedReads
from holdfast.storage import bookings, listings
from holdfast.storage.database import Database

SIMILAR_UNITS = 3


class Entered(NamedTuple):
    """A buyer has come to a booking of their own."""

    reference: str
    token: str


class Buying:
    """A buyer has two cookies: their holds are counted by one (``visitor``), and what was made with the other
    (``secret``) is opened by it. The first anybody may have chosen, so it opens nothing.
    """

    def __init__(self, database: Database, inventory: Inventory, selling: Selling) -> None:
        self._database = database
        self._inventory = inventory
        self._selling = selling
        self._reads = SharedReads()

    async def open(
        self, slug: str, code: str, address: str, visitor: str, secret: str, request_id: str
    ) -> Entered:
        """The unit is held for the buyer, or is theirs already: by a second click or in another tab."""
        own = await self.own_claim(slug, code, secret)
        if own is not None:
            return own
        requester = Requester(address, visitor, secret=secret)
        try:
            held = await self._selling.hold(slug, code, requester, None, request_id)
        except NotAvailable:
            own = await self.own_claim(slug, code, secret)
            if own is None:
                raise
            return own
        return Entered(held.booking.reference, held.token)

    async def own_claim(self, slug: str, code: str, secret: str) -> Entered | None:
        """The buyer's booking that the unit is held, reserved or sold by."""
        wanted = unit_id(await self._inventory.project_id(slug), code)
        async with self._database.reading() as connection:
            claims = await bookings.claims_on(connection, [wanted])
        claim = claims.get(wanted)
        return None if claim is None else await self._entered(claim, secret)

    async def live_holds(self, slug: str, visitor: str, secret: str) -> list[Found]:
        """What the buyer holds in this project now, to go back to."""
        return [one for one in await self.all_live_holds(visitor, secret) if one.project_slug == slug]

    async def all_live_holds(self, visitor: str, secret: str) -> list[Found]:
        """What is counted for the visitor in every project and the secret opens; the first to end first."""
        visitor_id = await self._selling.visitor_id(visitor)
        async with self._database.reading() as connection:
            found = await bookings.held_by(connection, visitor_id)
        live = [
            one
            for one in found
            if one.booking.status in CLAIMING and await self._entered(one.booking, secret) is not None
        ]
        return sorted(live, key=lambda one: (one.booking.hold_expires_at or one.now, one.unit_code))

    async def find(self, reference: str, secret: str, tokens: Sequence[str]) -> tuple[Found, str]:
        """By the buyer's secret, or by a token that came with a link; and the token that opened it."""
        found = await self._selling.find(reference)
        own = await self._selling.token_of_buyer(secret, found.booking.reference)
        for token in (own, *tokens):
            if hmac.compare_digest(found.booking.token_hash, token_hash(token)):
                return found, token
        raise UnknownBooking(reference)

    async def now(self) -> datetime:
        """By the clock that all holds end by."""
        async with self._database.reading() as connection:
            return await bookings.now(connection)

    async def similar(self, unit: Unit) -> list[BoardUnit]:
        """Free ones, the most alike first. All who look at a unit ask when it is taken."""
        return await self._reads.read((unit.id, unit.version), partial(self._similar, unit))

    async def _similar(self, unit: Unit) -> list[BoardUnit]:
        async with self._database.reading() as connection:
            return await listings.similar(connection, unit, SIMILAR_UNITS)

    async def _entered(self, claim: Booking, secret: str) -> Entered | None:
        token = await self._selling.token_of_buyer(secret, claim.reference)
        if not hmac.compare_digest(claim.token_hash, token_hash(token)):
            return None
        return Entered(claim.reference, token)
