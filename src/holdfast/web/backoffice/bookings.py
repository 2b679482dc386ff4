"""Bookings, as staff and payment systems use them."""

from __future__ import annotations

from holdfast.domain.refusals import Fault, UnknownBooking
from holdfast.operations.selling import Found, Selling
from holdfast.operations.write_path import Written
from holdfast.web.addresses import reference_in
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.authors import author_of, caller_of
from holdfast.web.backoffice.bodies import EXTENSION, EXTENSION_NAMES
from holdfast.web.booking_wire import found_document, written_document
from holdfast.web.call import Call
from holdfast.web.checking import no_fields, refuse_faults, valid_body
from holdfast.web.json_bodies import optional_json_body
from holdfast.web.queries import LAST_POSITION, Query, cursor_text, refuse_query


class StaffBookingRoutes:
    def __init__(self, selling: Selling) -> None:
        self._selling = selling

    async def list(self, call: Call) -> JsonAnswer:
        """The latest first."""
        faults: list[Fault] = []
        query = Query(call, faults)
        slug, code, status = query.slug("project"), query.code("unitCode"), query.booking_status()
        before, limit = query.position("cursor"), query.limit()
        query.finish()
        refuse_faults(faults)
        slugs = _slugs(call, slug)
        page = await self._selling.page(before or LAST_POSITION, slugs, code, status, limit)
        document = {
            "bookings": [found_document(found) for found in page[:limit]],
            "nextCursor": cursor_text(str(page[limit - 1].booking.number)) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def get(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        refuse_query(call, faults)
        refuse_faults(faults)
        return JsonAnswer(found_document(await self._found(call)))

    async def confirm_deposit(self, call: Call) -> JsonAnswer:
        await _no_body(call)
        found = await self._found(call)
        return _answer(await self._selling.confirm_deposit(found, caller_of(call), author_of(call)))

    async def cancel(self, call: Call) -> JsonAnswer:
        await _no_body(call)
        found = await self._found(call)
        return _answer(await self._selling.cancel(found, caller_of(call), author_of(call)))

    async def close_sale(self, call: Call) -> JsonAnswer:
        await _no_body(call)
        found = await self._found(call)
        return _answer(await self._selling.close_sale(found, caller_of(call), author_of(call)))

    async def extend(self, call: Call) -> JsonAnswer:
        body = await optional_json_body(call)
        faults: list[Fault] = []
        refuse_query(call, faults)
        until = valid_body(EXTENSION, body, EXTENSION_NAMES, faults).get("until")
        found = await self._found(call)
        return _answer(await self._selling.extend(found, until, caller_of(call), author_of(call)))

    async def mark_refunded(self, call: Call) -> JsonAnswer:
        await _no_body(call)
        return _answer(await self._selling.mark_refunded(await self._found(call), author_of(call)))

    async def reissue_link(self, call: Call) -> JsonAnswer:
        await _no_body(call)
        written, token = await self._selling.reissue_link(await self._found(call), author_of(call))
        return JsonAnswer({**written_document(written), "token": token}, 200, NOT_KEPT)

    async def _found(self, call: Call) -> Found:
        found = await self._selling.find(reference_in(call))
        if not call.key.may_use(found.project_slug):
            raise UnknownBooking(found.booking.reference)
        return found


def _answer(written: Written) -> JsonAnswer:
    return JsonAnswer(written_document(written))


def _slugs(call: Call, slug: str | None) -> tuple[str, ...] | None:
    """Those that are asked for, of those that the key may use."""
    allowed = call.key.project_slugs
    if slug is None:
        return allowed
    return (slug,) if call.key.may_use(slug) else ()


async def _no_body(call: Call) -> None:
    body = await optional_json_body(call)
    faults: list[Fault] = []
    refuse_query(call, faults)
    refuse_faults([*faults, *no_fields(body)])
