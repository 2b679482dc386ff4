"""The units on sale, and the hold of one of them."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.domain.refusals import Fault, UnknownUnit
from holdfast.operations.inventory import Inventory
from holdfast.operations.selling import Held, Selling
from holdfast.web.addresses import project_of, unit_of
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.authentication import bearer_token
from holdfast.web.call import Call
from holdfast.web.checking import no_fields, refuse_faults
from holdfast.web.client_address import ClientAddresses
from holdfast.web.cursors import cursor_text
from holdfast.web.json_bodies import optional_json_body
from holdfast.web.queries import Query, refuse_query
from holdfast.web.storefront.documents import STATUSES_ON_SALE, offer_document
from holdfast.web.storefront.visitors import refuse_other_sites, requester_of
from holdfast.web.wire import optional_time_text


class OfferRoutes:
    def __init__(
        self,
        inventory: Inventory,
        selling: Selling,
        addresses: ClientAddresses,
        cors_origins: Sequence[str] = (),
    ) -> None:
        self._origins = cors_origins
        self._inventory = inventory
        self._selling = selling
        self._addresses = addresses

    async def list(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        slug = project_of(call, faults)
        query = Query(call, faults)
        status, after, limit = query.status(STATUSES_ON_SALE), query.text_cursor(), query.limit()
        query.finish()
        refuse_faults(faults)
        page, project = await self._inventory.offers_page(slug, after, limit, status)
        document = {
            "units": [offer_document(unit, project) for unit in page[:limit]],
            "nextCursor": cursor_text(page[limit - 1].code) if len(page) > limit else None,
        }
        return JsonAnswer(document)

    async def get(self, call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        refuse_query(call, faults)
        refuse_faults(faults)
        unit, project = await self._inventory.find(slug, code)
        if unit.status not in STATUSES_ON_SALE:
            raise UnknownUnit(slug, code)
        return JsonAnswer(offer_document(unit, project))

    async def hold(self, call: Call) -> JsonAnswer:
        refuse_other_sites(call, self._origins)
        body = await optional_json_body(call)
        faults: list[Fault] = []
        slug, code = unit_of(call, faults)
        refuse_query(call, faults)
        requester = requester_of(call, self._addresses, faults)
        refuse_faults([*faults, *no_fields(body)])
        held = await self._selling.hold(slug, code, requester, bearer_token(call), call.request_id)
        return _held_answer(held)


def _held_answer(held: Held) -> JsonAnswer:
    document = {
        "reference": held.booking.reference,
        "token": held.token,
        "unit": offer_document(held.unit, held.project),
        "holdExpiresAt": optional_time_text(held.booking.hold_expires_at),
    }
    return JsonAnswer(document, 201 if held.is_new else 200, NOT_KEPT)
