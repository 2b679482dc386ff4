"""What a receiver answers. The problem's text stands in the log of Holdfast, where staff read it."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import NamedTuple

from holdfast_webhooks.refused import Reason, SignatureRefused

MAX_BODY_BYTES = 1024 * 1024
_MALFORMED = (Reason.HEADER_REPEATED, Reason.BODY_NOT_AN_EVENT, Reason.ID_DIFFERS, Reason.TYPE_DIFFERS)


class Answer(NamedTuple):
    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def _problem(status: int, reason: str, detail: str, *headers: tuple[str, str]) -> Answer:
    title = HTTPStatus(status).phrase
    body = json.dumps({"title": title, "status": status, "reason": reason, "detail": detail}).encode()
    described = (("Content-Type", "application/problem+json"), ("Content-Length", str(len(body))))
    return Answer(status, (*headers, *described), body)


def refusal(refused: SignatureRefused) -> Answer:
    if refused.reason in _MALFORMED:
        return _problem(400, refused.reason.value, refused.detail)
    return _problem(401, refused.reason.value, refused.detail, ("WWW-Authenticate", "Service-Signature"))


PROCESSED = Answer(204)
# Without a body, since it answers HEAD too.
NOT_POST = Answer(405, (("Allow", "POST"), ("Content-Length", "0")))
LENGTH_NOT_A_NUMBER = _problem(400, "length-not-a-number", "Content-Length is not a number.")
TOO_LARGE = _problem(413, "body-too-large", f"The body of a delivery has at most {MAX_BODY_BYTES} bytes.")
# Neither 204, which would lose the event if the first run fails after all, nor a wait, which would let a
# handler that hangs take all threads: the sender tries again later, and by then the first run has ended.
BUSY = _problem(409, "being-processed", "This delivery is being processed now.", ("Retry-After", "30"))
FAILED = _problem(500, "handler-failed", "The receiver could not process the event; its own log says why.")
