"""The callback: a payment system tells that a deposit was paid."""

from __future__ import annotations

from holdfast.domain.refusals import Fault, SignatureRefused
from holdfast.domain.signature import TOLERANCE_SECONDS, Reason
from holdfast.operations.paying import Paying
from holdfast.web.answer import NOT_KEPT, JsonAnswer
from holdfast.web.call import Call
from holdfast.web.checking import valid_body
from holdfast.web.json_bodies import json_body
from holdfast.web.payments.bodies import PAYMENT, PAYMENT_NAMES, payment_from
from holdfast.web.queries import refuse_query
from holdfast.web.refusals import BodyTooLarge, UnknownRoute
from holdfast.web.routing import Guard, Place, resource

CALLBACK = "/v1/payments/callback"
TIMESTAMP, SIGNATURE = "X-Payment-Timestamp", "X-Payment-Signature"
BODY_LIMIT = 64 * 1024
"""Small: it has to be read before anybody knows who sent it."""

_NOT_SIGNED = f"Send `{TIMESTAMP}` and `{SIGNATURE}: sha256=<hex digest>`."
_DIFFERS = (
    "The signature is not the one of this timestamp and this body: HMAC-SHA256 with the payment secret over "
    "the timestamp, a dot and the body as it is sent."
)
_TOO_FAR = f"The timestamp is more than {TOLERANCE_SECONDS} seconds from now: sign anew, or set the clock."
_WHY = {
    Reason.SIGNATURE_MISSING: _NOT_SIGNED,
    Reason.TIMESTAMP_MISSING: _NOT_SIGNED,
    Reason.SCHEME_NOT_SHA256: f"`{SIGNATURE}` must begin with `sha256=`.",
    Reason.DIGEST_MISSING: f"`{SIGNATURE}` has no digest.",
    Reason.DIGEST_MALFORMED: f"The digest of `{SIGNATURE}` must be 64 digits of 0-9 and a-f.",
    Reason.TIMESTAMP_NOT_A_NUMBER: f"`{TIMESTAMP}` must be the Unix time in seconds.",
    Reason.TOO_OLD: _TOO_FAR,
    Reason.TOO_FAR_AHEAD: _TOO_FAR,
    Reason.DIGEST_DIFFERS: _DIFFERS,
}


class CallbackTooLarge(BodyTooLarge):
    def __init__(self, limit: int) -> None:
        super(BodyTooLarge, self).__init__(f"The body is larger than {limit // 1024} KiB.")


class SignedByTheTill:
    """Lets calls pass that are signed with the payment secret; without one there is nothing here."""

    def __init__(self, paying: Paying) -> None:
        self._paying = paying

    async def __call__(self, call: Call) -> None:
        if not self._paying.is_open:
            raise UnknownRoute
        timestamp, signature = _header(call, TIMESTAMP), _header(call, SIGNATURE)
        body = await _body(call) if timestamp and signature else b""
        fault = await self._paying.signature_fault(timestamp, signature, body)
        if fault is not None:
            raise SignatureRefused(_WHY[fault])
        # Put back for the route, which reads it as every route does.
        call.exchange.feed(body)


class CallbackRoutes:
    def __init__(self, paying: Paying) -> None:
        self._paying = paying

    async def take(self, call: Call) -> JsonAnswer:
        body = await json_body(call)
        faults: list[Fault] = []
        refuse_query(call, faults)
        payment = payment_from(valid_body(PAYMENT, body, PAYMENT_NAMES, faults))
        booking = (await self._paying.confirm(payment, call.request_id)).booking
        return JsonAnswer({"reference": booking.reference, "status": booking.status}, 200, NOT_KEPT)


def payment_places(paying: Paying, guard: Guard) -> list[Place]:
    return [resource(CALLBACK, guard, POST=CallbackRoutes(paying).take)]


def _header(call: Call, name: str) -> str | None:
    value = call.exchange.head.values.get(name.lower().encode())
    return None if value is None else value.decode("latin-1")


async def _body(call: Call) -> bytes:
    try:
        return await call.body(BODY_LIMIT)
    except BodyTooLarge:
        raise CallbackTooLarge(BODY_LIMIT) from None
