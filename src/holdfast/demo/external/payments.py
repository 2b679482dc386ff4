"""A payment page that stands in for a provider's: it verifies links to it and calls back what was paid.

No money moves. The link is verified before anything in it is used, a booking has one payment with one id
however often it is reported, and the callback is repeated until Holdfast has answered. A real page must not
copy one thing: this one can pay after the end of a hold, to show what becomes of late money.
"""

import asyncio
import hashlib
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated
from urllib.parse import parse_qsl

import httpx
import msgspec

from holdfast.domain.payment import LINK_PREFIX
from holdfast.domain.signature import SignatureProblem, sign, verify

CALLBACK_ATTEMPTS = 6
FIRST_RETRY_SECONDS = 0.25
LATE_BY_SECONDS = 1.0
_MAX_PAYMENTS = 1000
_encode = msgspec.json.Encoder(decimal_format="number").encode


class InvalidLink(Exception):
    """The link was not made by Holdfast, or has been changed since."""

    def __init__(self, reason: SignatureProblem | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """None: the signature is right, but the link names nothing to pay."""


_Url = Annotated[str, msgspec.Meta(pattern="^https?://")]


class DuePayment(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    reference: str
    amount_sar: Decimal
    return_url: _Url
    callback_url: _Url
    language: str = "en"
    expires_at: datetime | None = None
    """End of the hold: what is paid later comes too late for it."""
    link: str
    """The query of the link, which the page's form sends back."""

    @property
    def payment_id(self) -> str:
        """The provider's id. A buyer who comes again has another link and the same payment."""
        return "pay_" + hashlib.sha256(f"{self.reference} {self.amount_sar}".encode()).hexdigest()[:20]


class PaymentStatus(StrEnum):
    WAITING = "waiting"
    """For the end of the hold, if the buyer chose to pay late, or for Holdfast to answer."""
    CONFIRMED = "confirmed"
    REJECTED = "rejected"
    """Holdfast does not take it: a real provider gives the money back."""
    UNANSWERED = "unanswered"


@dataclass
class Payment:
    due: DuePayment
    status: PaymentStatus = PaymentStatus.WAITING
    error: str | None = None
    confirmation: asyncio.Task[None] | None = None

    def record(self, response: httpx.Response) -> None:
        if response.is_success:
            self.status = PaymentStatus.CONFIRMED
            return
        self.status, self.error = PaymentStatus.REJECTED, f"HTTP {response.status_code}"
        with suppress(ValueError, KeyError, TypeError):
            self.error = str(response.json()["detail"])


def parse_link(query: str, secret: str, now: float | None) -> DuePayment:
    """Verify and parse the query of a link. Without ``now`` its age is not checked: its page was open."""
    signed, _, rest = query.partition("&timestamp=")
    parameters = dict(parse_qsl(f"timestamp={rest}"))
    timestamp, signature = parameters.get("timestamp"), parameters.get("signature")
    reason = verify(secret, timestamp, signature, signed.encode(), now, LINK_PREFIX)
    if not secret or reason is not None:
        raise InvalidLink(reason or SignatureProblem.DIGEST_DIFFERS)
    try:
        return msgspec.convert(dict(parse_qsl(signed)) | {"link": query}, DuePayment, strict=False)
    except msgspec.ValidationError:
        raise InvalidLink from None


class PaymentProvider:
    def __init__(self, secret: str, client: httpx.AsyncClient) -> None:
        self.secret = secret
        self.payments: dict[str, Payment] = {}
        self._client = client

    def pay(self, due: DuePayment, *, after_hold: bool = False) -> Payment:
        """Pay once, however often the button is pressed, unless Holdfast has never answered."""
        payment = self.payments.get(due.payment_id)
        if payment is None or payment.status is PaymentStatus.UNANSWERED:
            delay = 0.0
            if after_hold and due.expires_at is not None:
                delay = max(0.0, due.expires_at.timestamp() - time.time() + LATE_BY_SECONDS)
            payment = self.payments[due.payment_id] = Payment(due)
            payment.confirmation = asyncio.create_task(self._confirm(payment, delay))
            while len(self.payments) > _MAX_PAYMENTS:
                del self.payments[next(iter(self.payments))]
        return payment

    async def _confirm(self, payment: Payment, delay: float) -> None:
        await asyncio.sleep(delay)
        retry_seconds = FIRST_RETRY_SECONDS
        for _ in range(CALLBACK_ATTEMPTS):
            response = await self._call_back(payment.due)
            if response is not None:
                payment.record(response)
                return
            await asyncio.sleep(retry_seconds)
            retry_seconds *= 2
        payment.status = PaymentStatus.UNANSWERED

    async def _call_back(self, due: DuePayment) -> httpx.Response | None:
        """Return None if Holdfast may not have got it; a repeated callback does no harm."""
        body = _encode({"id": due.payment_id, "reference": due.reference, "amountSar": due.amount_sar})
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "X-Payment-Timestamp": str(timestamp),
            "X-Payment-Signature": sign(self.secret, timestamp, body),
        }
        try:
            response = await self._client.post(due.callback_url, content=body, headers=headers)
        except httpx.TransportError:
            return None
        retry = response.is_server_error or response.status_code == httpx.codes.TOO_MANY_REQUESTS
        return None if retry else response
