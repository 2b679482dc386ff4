"""A payment page that stands in for a provider's: the way to it is checked, and what was paid is called back.

No money moves. The link is verified before anything of it is believed, a booking has one payment with one id
however often it is told, and it is told again until Holdfast has answered. One thing is here on purpose that
a real page must not do: it pays after the end of a hold if one likes, to show what becomes of late money.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx
import msgspec

from holdfast.domain.signature import Reason, sign, verify

TELLINGS = 6
FIRST_GAP_SECONDS = 0.25
TOO_LATE_BY_SECONDS = 1.0
_MOST_PAYMENTS = 1000
_encode = msgspec.json.Encoder(decimal_format="number").encode


class LinkRefused(Exception):
    """The way here was not made by Holdfast, or has been changed since."""

    def __init__(self, reason: Reason | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """None: it is signed, but says nothing that could be paid."""


class PaymentRequest(NamedTuple):
    """What Holdfast asks to be paid, as its link says it."""

    reference: str
    amount_sar: Decimal
    return_url: str
    callback_url: str
    language: str
    expires_at: datetime | None
    """When the hold is over: what is paid later comes too late for it."""
    link: str
    """The query of it, to be sent back by the page's form."""

    @property
    def payment_id(self) -> str:
        """Ours. A buyer who comes again has another link, and the same payment."""
        return "pay_" + hashlib.sha256(f"{self.reference} {self.amount_sar}".encode()).hexdigest()[:20]


class Progress(StrEnum):
    WAITING = "waiting"
    """For the hold to be over, as the buyer wished, or for Holdfast to answer."""
    TOLD = "told"
    REFUSED = "refused"
    """Holdfast does not take it: a real provider gives the money back."""
    UNANSWERED = "unanswered"


@dataclass
class Payment:
    request: PaymentRequest
    progress: Progress = Progress.WAITING
    booking_status: str | None = None
    """As Holdfast has answered: reserved, or refund-due."""
    refusal: str | None = None
    telling: asyncio.Task[None] | None = None


def read_link(query: str, secret: str, now: float | None) -> PaymentRequest:
    """``query`` as it was sent. Without ``now`` the age of the link is left out: its page was open before."""
    signed, _, rest = query.partition("&timestamp=")
    parameters = dict(parse_qsl(f"timestamp={rest}"))
    timestamp, signature = parameters.get("timestamp"), parameters.get("signature")
    reason = verify(secret, timestamp, signature, signed.encode(), now)
    if not secret or reason is not None:
        raise LinkRefused(reason or Reason.DIGEST_DIFFERS)
    return _request(dict(parse_qsl(signed)), query)


def _request(said: Mapping[str, str], query: str) -> PaymentRequest:
    expires_at = said.get("expiresAt")
    try:
        return PaymentRequest(
            said["reference"],
            Decimal(said["amountSar"]),
            _web_address(said["returnUrl"]),
            _web_address(said["callbackUrl"]),
            said.get("language", "en"),
            datetime.fromisoformat(expires_at) if expires_at else None,
            query,
        )
    except (KeyError, ValueError, InvalidOperation):
        raise LinkRefused from None


def _web_address(url: str) -> str:
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError(url)
    return url


class Cashier:
    def __init__(self, secret: str, client: httpx.AsyncClient) -> None:
        self._secret = secret
        self._client = client
        self._payments: dict[str, Payment] = {}

    def find(self, payment_id: str) -> Payment | None:
        return self._payments.get(payment_id)

    def pay(self, request: PaymentRequest, *, after_the_hold: bool = False) -> Payment:
        """Once, however often the button is pressed; unless nobody has heard of it yet."""
        payment = self._payments.get(request.payment_id)
        if payment is None or payment.progress is Progress.UNANSWERED:
            delay = _until_too_late(request) if after_the_hold else 0.0
            payment = self._payments[request.payment_id] = Payment(request)
            payment.telling = asyncio.create_task(self._tell(payment, delay))
            self._forget_old()
        return payment

    async def _tell(self, payment: Payment, delay: float) -> None:
        await asyncio.sleep(delay)
        gap = FIRST_GAP_SECONDS
        for _ in range(TELLINGS):
            answer = await self._call_back(payment.request)
            if answer is not None:
                _note(payment, answer)
                return
            await asyncio.sleep(gap)
            gap *= 2
        payment.progress = Progress.UNANSWERED

    async def _call_back(self, request: PaymentRequest) -> httpx.Response | None:
        """None: it is not known whether Holdfast has heard it; the same again does no harm."""
        body = _encode(
            {"id": request.payment_id, "reference": request.reference, "amountSar": request.amount_sar}
        )
        timestamp = int(time.time())
        headers = {
            "Content-Type": "application/json",
            "X-Payment-Timestamp": str(timestamp),
            "X-Payment-Signature": sign(self._secret, timestamp, body),
        }
        try:
            answer = await self._client.post(request.callback_url, content=body, headers=headers)
        except httpx.TransportError:
            return None
        come_again = answer.is_server_error or answer.status_code == httpx.codes.TOO_MANY_REQUESTS
        return None if come_again else answer

    def _forget_old(self) -> None:
        while len(self._payments) > _MOST_PAYMENTS:
            del self._payments[next(iter(self._payments))]


def _until_too_late(request: PaymentRequest) -> float:
    if request.expires_at is None:
        return 0.0
    return max(0.0, request.expires_at.timestamp() - time.time() + TOO_LATE_BY_SECONDS)


def _note(payment: Payment, answer: httpx.Response) -> None:
    document = _document(answer)
    if answer.is_success:
        payment.progress, payment.booking_status = Progress.TOLD, document.get("status")
    else:
        payment.progress = Progress.REFUSED
        payment.refusal = str(document.get("detail") or f"HTTP {answer.status_code}")


def _document(answer: httpx.Response) -> dict[str, Any]:
    try:
        document = answer.json()
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}
