"""Bookings, as staff and payment systems use them."""

from __future__ import annotations

from holdfast.domain.booking import Booking
from holdfast.domain.refusals import Fault, UnknownBooking
from holdfast.operations.inventory import Inventory
from holdfast.operations.selling import Found, Selling
from holdfast.operations.write_path import Written
from holdfast.web.addresses import reference_of, refuse_other_projects
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.authors import author_of, caller_of
from holdfast.web.backoffice.bodies import EXTENSION, EXTENSION_NAMES
from holdfast.web.booking_wire import found_document, written_document
from holdfast.web.buyer_links import buyer_link
from holdfast.web.call import Call
from holdfast.web.checking import no_fields, refuse_faults, valid_body
from holdfast.web.cursors import moment_cursor_text
from holdfast.web.json_bodies import optional_json_body
from holdfast.web.queries import Query, refuse_query


class StaffBookingRoutes:
    def __init__(self, inventory: Inventory, selling: Selling, public_url: str) -> None:
        self._inventory = inventory
        self._selling = selling
        self._public_url = public_url

    async def list(self, call: Call) -> JsonAnswer:
        """The latest first."""
        faults: list[Fault] = []
        query = Query(call, faults)
        slug, code, status = query.slug("project"), query.code("unitCode"), query.booking_status()
        before, limit = query.moment_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        slugs = await self._slugs(call, slug)
        page = await self._selling.page(before, slugs, code, status, limit)
        document = {
            "bookings": [found_document(found) for found in page[:limit]],
            "nextCursor": _cursor_after(page[limit - 1].booking) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def get(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        reference = reference_of(call, faults)
        refuse_query(call, faults)
        refuse_faults(faults)
        return JsonAnswer(found_document(await self._found(call, reference)))

    async def confirm_deposit(self, call: Call) -> JsonAnswer:
        found = await self._named(call)
        return _answer(await self._selling.confirm_deposit(found, caller_of(call), author_of(call)))

    async def cancel(self, call: Call) -> JsonAnswer:
        found = await self._named(call)
        return _answer(await self._selling.cancel(found, caller_of(call), author_of(call)))

    async def close_sale(self, call: Call) -> JsonAnswer:
        found = await self._named(call)
        return _answer(await self._selling.close_sale(found, caller_of(call), author_of(call)))

    async def extend(self, call: Call) -> JsonAnswer:
        body = await optional_json_body(call)
        faults: list[Fault] = []
        reference = reference_of(call, faults)
        refuse_query(call, faults)
        until = valid_body(EXTENSION, body, EXTENSION_NAMES, faults).get("until")
        found = await self._found(call, reference)
        return _answer(await self._selling.extend(found, until, caller_of(call), author_of(call)))

    async def mark_refunded(self, call: Call) -> JsonAnswer:
        found = await self._named(call)
        return _answer(await self._selling.mark_refunded(found, author_of(call)))

    async def reissue_link(self, call: Call) -> JsonAnswer:
        found = await self._named(call)
        written, token = await self._selling.reissue_link(found, author_of(call))
        url = buyer_link(self._public_url, found.project_slug, found.booking.reference, token)
        return JsonAnswer({**written_document(written), "token": token, "url": url}, 200, NOT_KEPT)

    async def erase_buyer(self, call: Call) -> JsonAnswer:
        found = await self._named(call)
        return _answer(await self._selling.erase_buyer(found, author_of(call)))

    async def _named(self, call: Call) -> Found:
        """The booking of a call that has nothing to say in a body."""
        body = await optional_json_body(call)
        faults: list[Fault] = []
        reference = reference_of(call, faults)
        refuse_query(call, faults)
        refuse_faults([*faults, *no_fields(body)])
        return await self._found(call, reference)

    async def _found(self, call: Call, reference: str) -> Found:
        found = await self._selling.find(reference)
        if not call.key.may_use(found.project_slug):
            # As it was typed: the spelling that we would choose tells that there is such a booking.
            raise UnknownBooking(reference)
        return found

    async def _slugs(self, call: Call, slug: str | None) -> tuple[str, ...] | None:
        """None: those of every project."""
        if slug is None:
            return call.key.project_slugs
        refuse_other_projects(call, slug)
        await self._inventory.project_id(slug)
        return (slug,)


def _cursor_after(booking: Booking) -> str:
    return moment_cursor_text(booking.created_at, booking.number)


def _answer(written: Written) -> JsonAnswer:
    return JsonAnswer(written_document(written))
