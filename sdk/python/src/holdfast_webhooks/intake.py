"""What the receivers for ASGI and WSGI have in common."""

from __future__ import annotations

import inspect
import logging
from typing import Callable, NamedTuple, Union
from uuid import uuid4

from holdfast_webhooks.answers import BUSY, PROCESSED, Answer, refusal
from holdfast_webhooks.event import Event
from holdfast_webhooks.headers import Headers
from holdfast_webhooks.refused import SignatureRefused
from holdfast_webhooks.seen import Claim, SeenIds, SeenInMemory
from holdfast_webhooks.signature import Secrets, signing_keys
from holdfast_webhooks.verifying import verify

log = logging.getLogger("holdfast_webhooks")
# A function gives the secrets of the moment.
SecretSource = Union[Secrets, Callable[[], Secrets]]


class Taken(NamedTuple):
    """The right to act on one delivery, until it is remembered or released."""

    delivery_id: str
    token: str


class Intake:
    def __init__(self, secret: SecretSource, seen: SeenIds | None, clock: Callable[[], float]) -> None:
        self._secrets = secret if callable(secret) else _fixed(secret)
        self._seen: SeenIds = SeenInMemory() if seen is None else seen
        self._clock = clock

    def checked(self, headers: Headers, body: bytes) -> Event | Answer:
        try:
            return verify(headers, body, self._secrets(), self._clock())
        except SignatureRefused as refused:
            log.warning("A delivery was refused: %s", refused)
            return refusal(refused)

    def claim(self, event: Event) -> Taken | Answer:
        taken = Taken(str(event.id), uuid4().hex)
        claim = self._seen.claim(*taken)
        if claim is Claim.TAKEN:
            return taken
        return PROCESSED if claim is Claim.DONE else BUSY

    def remember(self, taken: Taken) -> None:
        self._seen.remember(*taken)

    def release(self, taken: Taken) -> None:
        self._seen.release(*taken)


def is_async(function: Callable[[Event], object]) -> bool:
    """An object may be called asynchronously as well."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _fixed(secret: Secrets) -> Callable[[], Secrets]:
    keys = signing_keys(secret)
    return lambda: keys
