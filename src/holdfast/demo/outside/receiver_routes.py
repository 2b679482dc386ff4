"""Where webhooks arrive, and the page on which they can be watched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from holdfast.demo.outside.pages import OutsidePages, in_other_languages
from holdfast.demo.outside.reading import read_body, read_form
from holdfast.demo.outside.receiver import Journal, Receiver
from holdfast.web.pages.i18n import Language

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
