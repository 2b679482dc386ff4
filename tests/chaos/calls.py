"""Calls of one client to one of two servers, each of them in the history."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from tests.chaos.history import History
from tests.support.concurrent_requests import Answer, Line, Request, open_line

ANSWER_SECONDS = 8.0
CONNECT_SECONDS = 2.0
PAUSE_AFTER_UNKNOWN = (0.05, 0.3)
PACE = (0.05, 0.2)
"""A client waits so long before a call."""
LOST = (OSError, EOFError, asyncio.LimitOverrunError)
"""A connection that fails or times out."""


class Reply(NamedTuple):
    call: str
    answer: Answer | None
    """None where there was none, or a 5xx: the outcome is unknown."""
    first: str = ""
    """The call that this one repeats, or itself."""

    @property
    def is_ok(self) -> bool:
        return self.answer is not None and self.answer.status < 300

    @property
    def document(self) -> Any:
        return document_of(self.answer) if self.answer is not None else None


def document_of(answer: Answer) -> Any:
    """None where there is no JSON."""
    is_json = answer.headers.get("content-type", "").split(";")[0].endswith("json")
    return json.loads(answer.content) if answer.content and is_json else None


def identified(request: Request, call: str) -> Request:
    return request._replace(headers=(*request.headers, ("X-Request-Id", call)))


@dataclass
class Journal:
    """The history and the counts of all clients."""

    history: History
    counts: Counter[str] = field(default_factory=Counter)
    """Of "ok", "fail" and "unknown"."""
    acknowledged: Counter[str] = field(default_factory=Counter)
    """How many calls of each operation were ok."""

    def note_answer(self, call: str, op: str, method: str, answer: Answer, *, with_document: bool) -> None:
        document = document_of(answer) if with_document or answer.status >= 400 else None
        kind = "ok" if answer.status < 300 else "fail" if answer.status < 500 else "unknown"
        self.counts[kind] += 1
        if kind == "unknown":
            self.history.note(kind, call=call, status=answer.status, why=self._reason(document))
        elif kind == "fail":
            self.history.note(kind, call=call, status=answer.status, answer=document)
        else:
            etag = answer.headers.get("etag")
            at = self.history.note(kind, call=call, status=answer.status, answer=document, etag=etag)
            self.acknowledged[op] += 1
            if method != "GET":
                self.history.acknowledged_at.append(at)

    def note_unknown(self, call: str, failure: BaseException) -> None:
        self.counts["unknown"] += 1
        self.history.note("unknown", call=call, status=None, why=f"{type(failure).__name__}: {failure}")

    def _reason(self, document: Any) -> str:
        return str(document.get("detail", "")) if isinstance(document, dict) else ""


class Caller:
    """A client: it stays with one server, and goes on with the next after a failure."""

    def __init__(
        self,
        name: str,
        journal: Journal,
        addresses: Sequence[str],
        chance: Random,
        *,
        at: int = 0,
        pace: tuple[float, float] = PACE,
    ) -> None:
        self.name = name
        self.chance = chance
        self.journal = journal
        self.addresses = addresses
        self.is_over = False
        """It starts nothing new, and repeats nothing any more."""
        self._at = at
        self._pace = pace
        self._lines: dict[str, Line] = {}
        self._calls = 0

    async def call(
        self,
        op: str,
        request: Request,
        unit: str | None = None,
        *,
        repeats: str | None = None,
        body: object = None,
        elsewhere: bool = False,
        with_document: bool = True,
    ) -> Reply:
        """``body``: as the history tells it, if the request has it in another form. ``elsewhere``: ask the
        other server."""
        if any(self._pace):
            await asyncio.sleep(self.chance.uniform(*self._pace))
        call = self.note_invoke(op, request, unit, repeats=repeats, body=body)
        address = self.addresses[(self._at + elsewhere) % len(self.addresses)]
        try:
            line = await self._line(address)
            line.send(identified(request, call))
            answer = await line.answer(ANSWER_SECONDS)
        except LOST as failure:
            self._hang_up(address)
            self.journal.note_unknown(call, failure)
            return await self._give_up(call)
        except asyncio.CancelledError as failure:
            self._hang_up(address)
            self.journal.note_unknown(call, failure)
            raise
        self.journal.note_answer(call, op, request.method, answer, with_document=with_document)
        return await self._give_up(call) if answer.status >= 500 else Reply(call, answer)

    @property
    def next_call(self) -> str:
        """The id of the next call."""
        return f"{self.name}.{self._calls + 1}"

    async def insist(
        self, op: str, make: Callable[[], Request], unit: str | None = None, *, body: object = None
    ) -> Reply:
        """Repeat the call until its outcome is known: what ``make`` makes can be done twice."""
        reply = await self.call(op, make(), unit, body=body)
        first = reply.call
        while reply.answer is None and not self.is_over:
            reply = await self.call(op, make(), unit, repeats=first, body=body)
        return reply._replace(first=first)

    def note_invoke(
        self, op: str, request: Request, unit: str | None, *, repeats: str | None = None, body: object = None
    ) -> str:
        """Return the id of the call."""
        call = self.next_call
        self._calls += 1
        sent = request.body if body is None else body
        repeated = {} if repeats is None else {"repeats": repeats}
        self.journal.history.note(
            "invoke", call=call, client=self.name, op=op, unit=unit, method=request.method, path=request.path,
            body=sent, **repeated,
        )  # fmt: skip
        return call

    def close(self) -> None:
        for address in list(self._lines):
            self._hang_up(address)

    async def new_line(self, address: str | None = None) -> Line:
        """Return another connection, to the server that it uses if no other is named."""
        async with asyncio.timeout(CONNECT_SECONDS):
            return await open_line(address or self.addresses[self._at % len(self.addresses)])

    async def _line(self, address: str) -> Line:
        line = self._lines.get(address)
        if line is None or not line.is_open:
            self._hang_up(address)
            line = self._lines[address] = await self.new_line(address)
        return line

    def _hang_up(self, address: str) -> None:
        if (line := self._lines.pop(address, None)) is not None:
            line.abort()

    async def _give_up(self, call: str) -> Reply:
        self._at = (self._at + 1) % len(self.addresses)
        if any(self._pace) and not self.is_over:
            await asyncio.sleep(self.chance.uniform(*PAUSE_AFTER_UNKNOWN))
        return Reply(call, None)
