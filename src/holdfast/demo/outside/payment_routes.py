"""The payment page: how to pay is chosen, and the buyer goes back to where they came from."""

from __future__ import annotations

import asyncio
import time
from http import HTTPStatus
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from holdfast.demo.outside.pages import OutsidePages
from holdfast.demo.outside.payments import Cashier, LinkRefused, Payment, Progress, read_link
from holdfast.demo.outside.reading import read_form

PAY = "/pay"
ANSWERED_WITHIN_SECONDS = 3.0


class PaymentRoutes:
    def __init__(self, secret: str, cashier: Cashier, pages: OutsidePages) -> None:
        self._secret = secret
        self._cashier = cashier
        self._pages = pages

    def routes(self) -> list[Route]:
        return [
            Route(PAY, self.ask, methods=["GET"]),
            Route(PAY, self.pay, methods=["POST"]),
            Route("/payments/{payment_id}", self.show, methods=["GET"]),
        ]

    async def ask(self, request: Request) -> Response:
        try:
            asked = read_link(request.url.query, self._secret, time.time())
        except LinkRefused as refusal:
            return self._refused(request, refusal, request.query_params.get("language"))
        language = self._pages.language(asked.language, request)
        return self._pages.html("pay.html", language, form_goes_on_to=asked.return_url, asked=asked)

    async def pay(self, request: Request) -> Response:
        form = await read_form(request)
        try:
            asked = read_link(form.get("link", ""), self._secret, None)
        except LinkRefused as refusal:
            return self._refused(request, refusal, None)
        if form.get("choice") == "decline":
            return RedirectResponse(_unpaid(asked.return_url), HTTPStatus.SEE_OTHER)
        is_late = form.get("choice") == "late"
        await _settled(self._cashier.pay(asked, after_the_hold=is_late), wait=not is_late)
        return RedirectResponse(f"/payments/{asked.payment_id}", HTTPStatus.SEE_OTHER)

    async def show(self, request: Request) -> Response:
        """A payment that Holdfast has heard of sends its buyer back; until then the page asks again."""
        payment = self._cashier.find(request.path_params["payment_id"])
        if payment is None:
            return self._refused(request, LinkRefused(), None, HTTPStatus.NOT_FOUND)
        asked = payment.request
        if payment.progress is Progress.TOLD:
            return RedirectResponse(asked.return_url, HTTPStatus.SEE_OTHER)
        language = self._pages.language(asked.language, request)
        return self._pages.html(
            "payment.html", language, form_goes_on_to=asked.return_url, payment=payment, asked=asked
        )

    def _refused(
        self,
        request: Request,
        refusal: LinkRefused,
        language: str | None,
        status: HTTPStatus = HTTPStatus.FORBIDDEN,
    ) -> Response:
        return self._pages.html(
            "pay_refused.html", self._pages.language(language, request), status, reason=refusal.reason
        )


def _unpaid(return_url: str) -> str:
    """The address that a buyer who has not paid goes back to: it says nothing of a payment."""
    parts = urlsplit(return_url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name != "paid"]
    return parts._replace(query=urlencode(kept)).geturl()


async def _settled(payment: Payment, *, wait: bool) -> None:
    """Mostly at once, so that the buyer goes back without a page in between."""
    if wait and payment.telling is not None:
        await asyncio.wait({payment.telling}, timeout=ANSWERED_WITHIN_SECONDS)
