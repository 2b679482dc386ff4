"""A buyer's own booking: read, signed and cancelled with the token that came with the hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.domain.errors import Fault, HoldLapsed, TransitionNotAllowed
from holdfast.operations.bookings import FoundBooking
from holdfast.web.api.bodies import BuyerDetails, ModelBody
from holdfast.web.api.models import BookingDocument, booking_document
from holdfast.web.api.routes import ApiRoutes
from holdfast.web.api.storefront.units import PREFIX
from holdfast.web.auth import BOOKING_TOKEN
from holdfast.web.pages.i18n import accepted_language
from holdfast.web.request import PUBLIC_BODY_LIMIT, Request

routes = ApiRoutes(PREFIX, "Storefront", BOOKING_TOKEN)


class SignatureBody(ModelBody):
    """Read only for those whose token opens the booking."""

    async def read(self, request: Request, path: Sequence[Any], faults: list[Fault]) -> Any:
        (reference,) = path
        if not reference and faults:
            # It names no booking that a token could open; its fault is reported with those of the query.
            request.require_media_type()
            request.check_announced_length(self.limit)
            return None
        await _own_booking(request, reference)
        return await super().read(request, path, faults)


@routes.get("/bookings/{reference}", summary="Read your booking")
async def get_own_booking(request: Request, reference: str) -> BookingDocument:
    """The token opens only this booking and is valid as long as the booking exists. A wrong token is 404."""
    return booking_document(await _own_booking(request, reference))


@routes.delete("/bookings/{reference}", summary="Cancel your hold", errors=(HoldLapsed, TransitionNotAllowed))
async def cancel_own_booking(request: Request, reference: str) -> None:
    """Releases the unit. Cancelling again is 204 too. A lapsed hold is 409 `hold-lapsed`. Only staff can end
    a booking that is reserved or sold: 409 `transition-not-allowed`."""
    found = await _own_booking(request, reference)
    await request.services.bookings.cancel_as_buyer(found, request.request_id)


@routes.post(
    "/bookings/{reference}/sign",
    summary="Sign the agreement",
    body=SignatureBody(BuyerDetails, PUBLIC_BODY_LIMIT),
    errors=(HoldLapsed, TransitionNotAllowed),
)
async def sign_booking(request: Request, reference: str, body: BuyerDetails) -> BookingDocument:
    """Records the buyer and signs the agreement. Signing again with the same details changes nothing; with
    other details it is 409 `transition-not-allowed`. A lapsed hold cannot be signed: 409 `hold-lapsed`.

    The agreement and the e-mails to the buyer are in the language of `Accept-Language`, Arabic or English."""
    # Once more: the link may have been reissued while the body arrived.
    found = await _own_booking(request, reference)
    language = accepted_language(request.header(b"accept-language"))
    written = await request.services.bookings.sign(
        found, body.buyer(), request.request_id, language, token=request.bearer_token()
    )
    return booking_document(written)


async def _own_booking(request: Request, reference: str) -> FoundBooking:
    token = request.bearer_token()
    assert token is not None
    return await request.services.bookings.find_with_token(reference, token)
