"""The outermost layer: every request gets an id, an answer, a log line and its place in the metrics."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from time import perf_counter

from starlette.types import ASGIApp, Message

from holdfast.observability.logging import log_request
from holdfast.observability.metrics import note_request
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call, asgi_scope
from holdfast.web.http.exchange import Exchange
from holdfast.web.problem_types import INTERNAL_ERROR
from holdfast.web.problems import problem_answer, problem_type
from holdfast.web.refusals import ClientGone
from holdfast.web.routing import Place, place_of

logger = logging.getLogger("holdfast.web")

_CLIENT_GONE = 499
_ASKED_ALL_DAY = frozenset({"/healthz", "/readyz", "/metrics"})


class Front:
    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places

    async def __call__(self, exchange: Exchange) -> None:
        started_at = perf_counter()
        call = Call(exchange)
        status = INTERNAL_ERROR.status
        answered_at: float | None = None
        try:
            try:
                answer = await place_of(call, self._places).answer(call)
            except ClientGone:
                raise
            except Exception as failure:  # noqa: BLE001 - every failure becomes an answer
                answer = _told(failure, call)
            if isinstance(answer, JsonAnswer):
                status = answer.status_code
                if answer.is_short:
                    answer.send_whole(call)
                else:
                    await answer.send_parts(call)
            else:
                status, answered_at = await _send_page(answer, call)
        except ClientGone:
            status = _CLIENT_GONE
        finally:
            _note(call, status, (answered_at or perf_counter()) - started_at)


def _told(failure: Exception, call: Call) -> JsonAnswer:
    if problem_type(failure) is INTERNAL_ERROR:
        logger.error("request failed", exc_info=failure, extra={"fields": {"requestId": call.request_id}})
    return problem_answer(failure, call.request_id)


async def _send_page(page: ASGIApp, call: Call) -> tuple[int, float | None]:
    """Starlette's own responses speak ASGI, as this does for them.

    Gives the status and, for an answer without an end of its own, when it began: how long somebody watched
    says nothing of how long we took.
    """
    exchange = call.exchange
    status = 0
    begun_at = 0.0

    async def send(message: Message) -> None:
        nonlocal status, begun_at
        if message["type"] == "http.response.start":
            status, begun_at = message["status"], perf_counter()
            headers = [*message["headers"], (b"x-request-id", call.request_id.encode())]
            lines = b"".join(b"%b: %b\r\n" % header for header in headers)
            exchange.begin(status, lines, measured=any(name == b"content-length" for name, _ in headers))
        else:
            await exchange.send(message.get("body", b""))
            if not message.get("more_body", False):
                exchange.end()

    async def receive() -> Message:
        await exchange.parted()
        return {"type": "http.disconnect"}

    try:
        await page(asgi_scope(call), receive, send)
    except Exception as failure:
        if status:
            raise
        answer = _told(failure, call)
        answer.send_whole(call)
        return answer.status_code, None
    return status, begun_at if exchange.is_endless else None


def _note(call: Call, status: int, seconds: float) -> None:
    note_request(call.method, call.route, status, seconds)
    if call.route not in _ASKED_ALL_DAY:
        key = call.known_key.hint if call.known_key is not None else None
        log_request(call.method, _logged(call), status, call.request_id, call.route, seconds, key)


def _logged(call: Call) -> str:
    """A path may end with what opens an account, which is for its reader and not for the log."""
    return call.route if "{token}" in call.route else call.path
