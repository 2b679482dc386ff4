"""The outermost layer: every request gets an id, an answer, a log line and its place in the metrics."""

from __future__ import annotations

import logging
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.observability.logging import log_request
from holdfast.observability.metrics import note_request
from holdfast.web.call import Call
from holdfast.web.problem_types import INTERNAL_ERROR
from holdfast.web.problems import problem_response, problem_type
from holdfast.web.refusals import ClientGone
from holdfast.web.routing import CALL, ROUTE

logger = logging.getLogger("holdfast.web")

_NO_ROUTE = "none"
_ASKED_ALL_DAY = frozenset({"/healthz", "/readyz", "/metrics"})


class Front:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started_at = perf_counter()
        # Routes match the path as it was sent; only its parts are decoded, each by itself.
        scope["path"] = scope["raw_path"].decode("latin-1")
        scope[CALL] = call = Call(scope, receive)
        id_header = (b"x-request-id", call.request_id.encode())
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], id_header]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        except ClientGone:
            status = 499
        except Exception as failure:
            if problem_type(failure) is INTERNAL_ERROR:
                logger.exception("request failed", extra={"fields": {"requestId": call.request_id}})
            if status:
                raise
            await problem_response(failure, call.request_id)(scope, receive, send_with_id)
        finally:
            _note(scope, status, perf_counter() - started_at)


def _note(scope: Scope, status: int, seconds: float) -> None:
    call: Call = scope[CALL]
    route = scope.get(ROUTE, _NO_ROUTE)
    note_request(call.method, route, status, seconds)
    if route not in _ASKED_ALL_DAY:
        key = call.known_key.hint if call.known_key is not None else None
        log_request(call.method, scope["path"], status, call.request_id, route, seconds, key)
