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
                status = await _send_page(answer, call)
        except ClientGone:
            status = _CLIENT_GONE
        finally:
            _note(call, status, perf_counter() - started_at)


def _told(failure: Exception, call: Call) -> JsonAnswer:
    if problem_type(failure) is INTERNAL_ERROR:
        logger.error("request failed", exc_info=failure, extra={"fields": {"requestId": call.request_id}})
    return problem_answer(failure, call.request_id)


async def _send_page(page: ASGIApp, call: Call) -> int:
    """Starlette's own responses speak ASGI, as this does for them."""
    exchange = call.exchange
    status = 0

    async def send(message: Message) -> None:
        nonlocal status
        if message["type"] == "http.response.start":
            status = message["status"]
            headers = [*message["headers"], (b"x-request-id", call.request_id.encode())]
            exchange.begin(status, b"".join(b"%b: %b\r\n" % header for header in headers))
        else:
            await exchange.send(message.get("body", b""))
            if not message.get("more_body", False):
                exchange.end()

    try:
        await page(asgi_scope(call), _nothing_more, send)
    except Exception as failure:
        if status:
            raise
        answer = _told(failure, call)
        answer.send_whole(call)
        return answer.status_code
    return status


async def _nothing_more() -> Message:
    return {"type": "http.disconnect"}


def _note(call: Call, status: int, seconds: float) -> None:
    note_request(call.method, call.route, status, seconds)
    if call.route not in _ASKED_ALL_DAY:
        key = call.known_key.hint if call.known_key is not None else None
        log_request(call.method, call.path, status, call.request_id, call.route, seconds, key)
