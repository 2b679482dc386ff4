"""A buyer's own booking: read, signed, cancelled, with the token that came with the hold."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.domain.refusals import Fault, NoCredentials
from holdfast.operations.selling import Found, Selling
from holdfast.web.addresses import reference_of
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.authentication import bearer_token
from holdfast.web.booking_wire import found_document, written_document
from holdfast.web.buyer_bodies import BUYER, BUYER_NAMES, buyer_from
from holdfast.web.call import Call
from holdfast.web.checking import refuse_faults, valid_body
from holdfast.web.json_bodies import json_body
from holdfast.web.queries import refuse_query


class BookingRoutes:
    def __init__(self, selling: Selling) -> None:
        self._selling = selling

    async def guard(self, call: Call) -> None:
        """Whether a token opens anything is told when the booking is known."""
        if bearer_token(call) is None:
            raise NoCredentials(_HOW)

    async def get(self, call: Call) -> JsonAnswer:
        reference = _reference_alone(call)
        return JsonAnswer(found_document(await self._own(call, reference)), 200, NOT_KEPT)

    async def sign(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        reference = reference_of(call, faults)
        refuse_query(call, faults)
        buyer = buyer_from(valid_body(BUYER, body, BUYER_NAMES, faults))
        written = await self._selling.sign(await self._own(call, reference), buyer, call.request_id)
        return JsonAnswer(written_document(written), 200, NOT_KEPT)

    async def cancel(self, call: Call) -> Response:
        reference = _reference_alone(call)
        await self._selling.cancel_as_buyer(await self._own(call, reference), call.request_id)
        return Response(status_code=204)

    async def _own(self, call: Call, reference: str) -> Found:
        token = bearer_token(call)
        assert token is not None
        return await self._selling.find_with_token(reference, token)


def _reference_alone(call: Call) -> str:
    """Of a call that has neither a body nor parameters."""
    faults: list[Fault] = []
    reference = reference_of(call, faults)
    refuse_query(call, faults)
    refuse_faults(faults)
    return reference


_HOW = "Send the token that came with the hold as `Authorization: Bearer <token>`."
