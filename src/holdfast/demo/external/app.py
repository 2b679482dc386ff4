"""The application with the pages of the demo's webhook receiver and payment page, in English and Arabic."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from holdfast.demo.external.payments import InvalidLink, PaymentProvider, PaymentStatus, parse_link
from holdfast.demo.external.receiver import WebhookReceiver
from holdfast.web.pages.i18n import DIRECTIONS, NAMES, Language, accepted_language, language_of
from holdfast.web.pages.templates import STATIC, templates

BODY_LIMIT = 256 * 1024
CALLBACK_TIMEOUT_SECONDS = 10.0
# A confirmed payment sends the buyer straight back; after this long a page asks them to wait.
CONFIRMATION_WAIT_SECONDS = 3.0
HEARTBEAT_SECONDS = 10.0
_MAX_NUMBER_DIGITS = 18
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


class ExternalSettings(NamedTuple):
    hook_secret: str
    payment_secret: str
    """Signs links to the payment page and its callbacks. Empty if another payment page is configured."""
    holdfast_url: str
    time_zone: str


def external_app(settings: ExternalSettings, receiver: WebhookReceiver) -> Starlette:
    """Return the application; closing ``receiver`` ends its live streams."""
    client = httpx.AsyncClient(timeout=CALLBACK_TIMEOUT_SECONDS, trust_env=False)
    pages = _Pages(settings, receiver, PaymentProvider(settings.payment_secret, client))

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with client:
            yield

    return Starlette(
        routes=[
            Route("/hook", pages.receive_delivery, methods=["POST"]),
            Route("/", pages.show_deliveries, methods=["GET"]),
            Route("/live", pages.stream_deliveries, methods=["GET"]),
            Route("/fail-next", pages.fail_next_delivery, methods=["POST"]),
            Route("/pay", pages.show_payment_form, methods=["GET"]),
            Route("/pay", pages.pay, methods=["POST"]),
            Route("/payments/{payment_id}", pages.show_payment, methods=["GET"]),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        lifespan=lifespan,
    )


class _Pages:
    def __init__(
        self, settings: ExternalSettings, receiver: WebhookReceiver, provider: PaymentProvider
    ) -> None:
        self._settings = settings
        self._receiver = receiver
        self._provider = provider

    async def receive_delivery(self, request: Request) -> Response:
        body = await _read_body(request)
        if body is None:
            return PlainTextResponse("Too large.", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        status = self._receiver.receive(dict(request.headers), body)
        return PlainTextResponse(status.phrase, status)

    async def show_deliveries(self, request: Request) -> Response:
        language = self._language(request, request.query_params.get("lang"))
        query = {name: value for name, value in request.query_params.items() if name != "lang"}
        return self._page(
            "receiver.html",
            language,
            deliveries=list(reversed(self._receiver.deliveries_after(0))),
            latest_number=self._receiver.latest_number,
            fails_next=self._receiver.fails_next,
            others={code: f"?{urlencode({**query, 'lang': code})}" for code in language.others},
        )

    async def stream_deliveries(self, request: Request) -> Response:
        """Stream each delivery from now on, or after the last one that the browser has."""
        last_id = request.headers.get("last-event-id") or request.query_params.get("after", "")
        number = self._receiver.latest_number
        if last_id.isascii() and last_id.isdecimal() and len(last_id) <= _MAX_NUMBER_DIGITS:
            # A higher number comes from a receiver that ran before this one: all deliveries are new.
            number = int(last_id) if int(last_id) <= number else 0
        return StreamingResponse(
            self._events(number, self._language(request, request.query_params.get("lang"))),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    async def _events(self, number: int, language: Language) -> AsyncIterator[str]:
        while not self._receiver.is_closed:
            yield ": heartbeat\n\n"
            for delivery in self._receiver.deliveries_after(number):
                number = delivery.number
                html = self._render("delivery.html", language, delivery=delivery)
                yield f"id: {number}\ndata: {json.dumps(html)}\n\n"
            with suppress(TimeoutError):
                await asyncio.wait_for(self._receiver.wait_for_delivery(), HEARTBEAT_SECONDS)

    async def fail_next_delivery(self, request: Request) -> Response:
        form = await _read_form(request)
        if "fail" in form:
            self._receiver.fails_next = form["fail"] == "yes"
        language = self._language(request, form.get("lang"))
        return RedirectResponse(f"/?lang={language.code}", HTTPStatus.SEE_OTHER)

    async def show_payment_form(self, request: Request) -> Response:
        try:
            due = parse_link(request.url.query, self._provider.secret, time.time())
        except InvalidLink as error:
            return self._error_page(request, error, request.query_params.get("language"))
        language = self._language(request, due.language)
        return self._page("pay.html", language, return_url=due.return_url, due=due)

    async def pay(self, request: Request) -> Response:
        form = await _read_form(request)
        try:
            due = parse_link(form.get("link", ""), self._provider.secret, None)
        except InvalidLink as error:
            return self._error_page(request, error)
        if form.get("choice") == "decline":
            # `paid` in the query is for a buyer who has paid.
            url = httpx.URL(due.return_url).copy_remove_param("paid")
            return RedirectResponse(str(url), HTTPStatus.SEE_OTHER)
        is_late = form.get("choice") == "late"
        payment = self._provider.pay(due, after_hold=is_late)
        if not is_late and payment.confirmation is not None:
            await asyncio.wait({payment.confirmation}, timeout=CONFIRMATION_WAIT_SECONDS)
        return RedirectResponse(f"/payments/{due.payment_id}", HTTPStatus.SEE_OTHER)

    async def show_payment(self, request: Request) -> Response:
        """Send the buyer of a confirmed payment back; until then the page reloads itself."""
        payment = self._provider.payments.get(request.path_params["payment_id"])
        if payment is None:
            return self._error_page(request, InvalidLink(), status=HTTPStatus.NOT_FOUND)
        due = payment.due
        if payment.status is PaymentStatus.CONFIRMED:
            return RedirectResponse(due.return_url, HTTPStatus.SEE_OTHER)
        language = self._language(request, due.language)
        return self._page("payment.html", language, return_url=due.return_url, payment=payment, due=due)

    def _error_page(
        self,
        request: Request,
        error: InvalidLink,
        language_code: str | None = None,
        status: int = HTTPStatus.FORBIDDEN,
    ) -> Response:
        language = self._language(request, language_code)
        return self._page("invalid_link.html", language, status, reason=error.reason)

    def _language(self, request: Request, code: str | None) -> Language:
        if code not in DIRECTIONS:
            code = accepted_language(request.headers.get("accept-language", ""))
        return language_of(code, "latn", self._settings.time_zone)

    def _page(
        self, name: str, language: Language, status: int = 200, return_url: str | None = None, **values: Any
    ) -> HTMLResponse:
        """Render a page whose form may redirect to ``return_url``."""
        policy = _POLICY
        if return_url is not None:
            # Browsers hold a form to its policy through every redirect that follows.
            parts = urlsplit(return_url)
            policy = f"{_POLICY} {parts.scheme}://{parts.netloc}"
        headers = {**_HEADERS, "Content-Security-Policy": policy}
        return HTMLResponse(self._render(name, language, **values), status, headers=headers)

    def _render(self, name: str, language: Language, **values: Any) -> str:
        values |= {"language": language, "languages": NAMES, "holdfast_url": self._settings.holdfast_url}
        return templates().get_template(f"demo/{name}").render(values)


async def _read_body(request: Request) -> bytes | None:
    """Return the body, or None if it is larger than any that is meant for this application."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            return None
    return body


async def _read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form; none if another site has sent it."""
    body = await _read_body(request)
    if body is None or request.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
        return {}
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return {}
