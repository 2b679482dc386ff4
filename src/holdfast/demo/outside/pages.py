"""The pages of the world outside: strict about what they load, in English and Arabic."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from holdfast.demo.outside.payments import Cashier, LinkRefused, Payment, Progress, read_link
from holdfast.demo.outside.receiver import Journal, Received, Receiver
from holdfast.web.pages.i18n import DIRECTIONS, NAMES, Language, accepted_language, language_of
from holdfast.web.pages.templates import templates

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)


class OutsidePages:
    def __init__(self, holdfast_url: str, time_zone: str) -> None:
        self._holdfast_url = holdfast_url
        self._time_zone = time_zone

    def language(self, code: str | None, request: Request) -> Language:
        """What was asked for, or what the browser prefers."""
        spoken = code if code in DIRECTIONS else accepted_language(request.headers.get("accept-language", ""))
        return language_of(spoken or "en", "latn", self._time_zone)

    def html(
        self,
        name: str,
        language: Language,
        status: int = 200,
        form_goes_on_to: str | None = None,
        **values: Any,
    ) -> HTMLResponse:
        text = self._rendered(name, language, **values)
        policy = _POLICY if form_goes_on_to is None else f"{_POLICY} {_origin(form_goes_on_to)}"
        return HTMLResponse(text, status, headers={**_HEADERS, "Content-Security-Policy": policy})

    def entry(self, received: Received, language: Language) -> str:
        """One line of the receiver's page, for a browser that has the others."""
        return self._rendered("received.html", language, one=received)

    def _rendered(self, name: str, language: Language, **values: Any) -> str:
        return (
            templates()
            .get_template(f"demo/{name}")
            .render(language=language, languages=NAMES, holdfast_url=self._holdfast_url, **values)
        )


def in_other_languages(request: Request, language: Language, parameter: str) -> dict[str, str]:
    """The address of the same page in each of them."""
    given = {name: value for name, value in request.query_params.items() if name != parameter}
    return {code: f"?{urlencode({**given, parameter: code})}" for code in language.others}


def _origin(url: str) -> str:
    """Browsers hold a form to its policy through every redirect that follows."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


# Bodies as they come: never more than is wanted.

BODY_LIMIT = 256 * 1024
_OWN_SITE = ("same-origin", "none")


async def read_body(request: Request) -> bytes | None:
    """None: it is too large to be one that is meant for us."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            return None
    return body


async def read_form(request: Request) -> dict[str, str]:
    """Nothing of a form that another site has sent, or that is none."""
    body = await read_body(request)
    is_own = request.headers.get("sec-fetch-site", "none") in _OWN_SITE
    if body is None or not is_own:
        return {}
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return {}


# The payment page: how to pay is chosen, and the buyer goes back to where they came from.

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


# Where webhooks arrive, and the page on which they can be watched.

HOOK = "/hook"
BEAT_SECONDS = 10.0
_LONGEST_NUMBER = 18


class ReceiverRoutes:
    def __init__(self, receiver: Receiver, journal: Journal, pages: OutsidePages) -> None:
        self._receiver = receiver
        self._journal = journal
        self._pages = pages

    def routes(self) -> list[Route]:
        return [
            Route(HOOK, self.receive, methods=["POST"]),
            Route("/", self.show, methods=["GET"]),
            Route("/live", self.tell, methods=["GET"]),
            Route("/fail-next", self.fail_next, methods=["POST"]),
        ]

    async def receive(self, request: Request) -> Response:
        body = await read_body(request)
        if body is None:
            return PlainTextResponse("Too large.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        answer = self._receiver.receive(dict(request.headers), body)
        return PlainTextResponse(answer.phrase, answer)

    async def show(self, request: Request) -> Response:
        language = self._language(request)
        return self._pages.html(
            "receiver.html",
            language,
            received=list(reversed(self._journal.after(0))),
            latest_number=self._journal.latest_number,
            fails_next=self._receiver.fails_next,
            others=in_other_languages(request, language, "lang"),
        )

    async def tell(self, request: Request) -> Response:
        """Each that lands from now on, or after the last that the browser knows."""
        known = request.headers.get("last-event-id") or request.query_params.get("after", "")
        return StreamingResponse(
            self._news(self._number(known), self._language(request)),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    def _number(self, known: str) -> int:
        """After which to begin. One that is not reached yet is of a receiver before this one: all is new."""
        latest = self._journal.latest_number
        if not (known.isascii() and known.isdecimal() and len(known) <= _LONGEST_NUMBER):
            return latest
        return int(known) if int(known) <= latest else 0

    async def _news(self, number: int, language: Language) -> AsyncIterator[str]:
        while not self._journal.is_closed:
            yield ": beat\n\n"
            for one in self._journal.after(number):
                number = one.number
                yield f"id: {number}\ndata: {json.dumps(self._pages.entry(one, language))}\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(self._journal.growth(), BEAT_SECONDS)

    async def fail_next(self, request: Request) -> Response:
        form = await read_form(request)
        if "fail" in form:
            self._receiver.fails_next = form["fail"] == "yes"
        language = self._pages.language(form.get("lang"), request)
        return RedirectResponse(f"/?lang={language.code}", HTTPStatus.SEE_OTHER)

    def _language(self, request: Request) -> Language:
        return self._pages.language(request.query_params.get("lang"), request)
