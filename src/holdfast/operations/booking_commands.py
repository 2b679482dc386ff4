"""Commands on units and bookings, and drafts of new bookings."""

from __future__ import annotations

import asyncio
import hmac
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from ipaddress import ip_address
from typing import NamedTuple
from uuid import UUID

from holdfast.domain.addresses import counted_networks, shared_network
from holdfast.domain.api_key import new_token_text, token_from, token_hash
from holdfast.domain.audit import Author
from holdfast.domain.booking import NOBODY, Draft, Holder
from holdfast.domain.booking_actions import check_status_unchanged
from holdfast.domain.decision import UNCONDITIONAL, Decision, Needs, Precondition, UnitSnapshot
from holdfast.domain.holds import HoldRequest, check_end, get_unit, open_unit
from holdfast.domain.unit import revision, unit_id
from holdfast.storage import bookings
from holdfast.storage.database import WAIT_SECONDS, Database, translate_errors
from holdfast.storage.units import UnitKey


class HoldUnit(NamedTuple):
    key: UnitKey
    author: Author
    request: HoldRequest
    precondition: Precondition = UNCONDITIONAL

    @property
    def needs(self) -> Needs:
        draft, limits, token_hash = self.request.draft, self.request.limits, self.request.token_hash
        with_limits = zip(draft.holder, (*limits.slots, limits.share_percent), strict=True)
        counted = Holder(*(holder_id if limit else None for holder_id, limit in with_limits))
        recalled = (draft.holder.visitor_id, token_hash) if limits.rehold_seconds else (None, None)
        may_be_back = token_hash is not None or draft.idempotency_id is not None
        found = (counted, *recalled, limits.rehold_seconds, draft.idempotency_id)
        return Needs(may_be_back, None, *found, share_percent=limits.share_percent)

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        _check_precondition(self.precondition, snapshot, self.key[1])
        return open_unit(snapshot, self.key[1], self.request, now)


Decide = Callable[[UnitSnapshot, datetime], Decision]


@dataclass(frozen=True, slots=True)
class BookingCommand:
    """An action on a unit and the booking that claims it, or on the booking with this number.

    ``until``, a requested end, is checked first: it may be wrong whatever the unit is. Then come the
    precondition (If-Match) and the decision: a body that does not fit the unit is no fault of a caller who
    said which revision it was made for. With ``seen_status`` the command fails if the booking no longer has
    the status that the caller has seen.
    """

    key: UnitKey
    author: Author
    number: int | None
    run: Decide
    seen_status: str | None = None
    until: datetime | None = None
    precondition: Precondition = UNCONDITIONAL
    payment_id: str | None = None
    sends_email: bool = False

    @property
    def needs(self) -> Needs:
        return Needs(claim=True, booking_number=self.number, payment_id=self.payment_id)

    def decide(self, snapshot: UnitSnapshot, now: datetime) -> Decision:
        check_end(self.until, now)
        _check_precondition(self.precondition, snapshot, self.key[1])
        if self.number is not None and self.seen_status is not None:
            check_status_unchanged(snapshot, self.number, self.seen_status)
        decision = self.run(snapshot, now)
        return decision if self.sends_email else decision._replace(email=None)


def _check_precondition(precondition: Precondition, snapshot: UnitSnapshot, code: str) -> None:
    if precondition is not UNCONDITIONAL:
        precondition.check(revision(get_unit(snapshot, code), snapshot.project))


NUMBERS_AT_ONCE = 200


class Requester(NamedTuple):
    """The caller who asks for a hold, as HTTP knows them."""

    address: str
    visitor: str | None = None
    """The cookie by which live holds are counted. Anybody may have chosen it, so alone it opens nothing."""
    idempotency_key: str | None = None
    secret: str | None = None
    """The cookie by which a buyer at our pages gets at their bookings again."""


class DraftedBooking(NamedTuple):
    draft: Draft
    token: str
    """The token itself: given to the buyer, never stored."""


class BookingDrafts:
    """Makes reference, token and holder of bookings before their transaction. One for each process."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._references: deque[tuple[int, str]] = deque()
        self._refilling = asyncio.Lock()
        self._secret: bytes | None = None

    def give_back(self, draft: Draft) -> None:
        """Use the number of a draft again that became no booking: nobody has seen its reference."""
        self._references.append((draft.number, draft.reference))

    def forget(self) -> None:
        """Forget references and secret of a database that is gone, perhaps for good."""
        self._references.clear()
        self._secret = None

    async def draft(self) -> DraftedBooking:
        """Make the draft of a booking by staff."""
        return _drafted(await self._next_reference(), new_token_text(), NOBODY, None)

    async def draft_for(self, requester: Requester, project_id: UUID, code: str) -> DraftedBooking:
        """The same request again (by its Idempotency-Key) has the same token again.

        Such a token is made of the installation's secret and the key: whoever guesses the key cannot make
        it, nor can whoever reads the database, unless the key can be guessed. A buyer who comes back has
        tokens of the same kind, one for each reference.
        """
        secret = await self._installation_secret()
        numbered = await self._next_reference()
        idempotency_id, token = None, new_token_text()
        if requester.idempotency_key is not None:
            unit = str(unit_id(project_id, code))
            name = f"{unit}\n{requester.idempotency_key}"
            idempotency_id = _hidden_id(secret, "idempotency key", name)
            token = token_from(hmac.digest(secret, b"token\n" + name.encode(), "sha256"))
        elif requester.secret is not None:
            token = await self.token_of_buyer(requester.secret, numbered[1])
        client = ip_address(requester.address)
        address, *wider = (network for network, _ in counted_networks(client))
        names = {"address": address, "visitor": requester.visitor}
        names |= zip(("prefix_56", "prefix_48"), wider, strict=False)
        names["project_network"] = f"{project_id}\n{shared_network(client)}"
        hidden = {f"{kind}_id": _hidden_id(secret, kind, name) for kind, name in names.items() if name}
        return _drafted(numbered, token, Holder(**hidden), idempotency_id)

    async def token_of_buyer(self, buyer_secret: str, reference: str) -> str:
        """Return the token of a booking that our pages made for the buyer with this secret."""
        text = f"buyer's token\n{reference}\n{buyer_secret}"
        return token_from(hmac.digest(await self._installation_secret(), text.encode(), "sha256"))

    async def visitor_id(self, visitor: str) -> UUID:
        return _hidden_id(await self._installation_secret(), "visitor", visitor)

    async def _next_reference(self) -> tuple[int, str]:
        """Numbers that a process took and never used are gone; references are never made twice."""
        with translate_errors():
            async with asyncio.timeout(WAIT_SECONDS), self._refilling:  # no longer than a command waits
                while not self._references:
                    self._references += await self._database.write(bookings.next_references, NUMBERS_AT_ONCE)
        return self._references.popleft()

    async def _installation_secret(self) -> bytes:
        if self._secret is None:
            self._secret = await self._database.read(bookings.installation_secret)
        return self._secret


def _drafted(
    numbered: tuple[int, str], token: str, holder: Holder, idempotency_id: UUID | None
) -> DraftedBooking:
    draft = Draft(*numbered, token_hash(token), holder, idempotency_id)
    return DraftedBooking(draft, token)


def _hidden_id(secret: bytes, kind: str, name: str) -> UUID:
    return UUID(bytes=blake2b(f"{kind}\n{name}".encode(), key=secret, digest_size=16).digest())
