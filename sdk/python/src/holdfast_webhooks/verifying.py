"""A request is a delivery of Holdfast, or it is refused."""

from __future__ import annotations

import time

from holdfast_webhooks.event import Event, read_event
from holdfast_webhooks.headers import DeliveryHeaders, Headers, delivery_headers
from holdfast_webhooks.refused import Reason, SignatureRefused
from holdfast_webhooks.signature import Secrets, check_signature, signing_keys


def verify(headers: Headers, body: bytes, secret: Secrets, now: float | None = None) -> Event:
    """The event that was delivered; raises `SignatureRefused`, which names its `reason`.

    `body` is the raw body exactly as received. `secret` may be a sequence: for the minutes of a
    rotation, name both the new and the old one. `now` is Unix time, by default that of this clock.
    """
    raw = _raw(body)
    keys = signing_keys(secret)
    found = delivery_headers(headers)
    check_signature(keys, found.timestamp, found.signature, raw, time.time() if now is None else now)
    return _agreeing(found, read_event(raw))


def _raw(body: object) -> bytes:
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    raise TypeError("The body must be the raw bytes as received: text or JSON written anew has other bytes.")


def _agreeing(found: DeliveryHeaders, event: Event) -> Event:
    """The signature covers the body alone, so nobody may act on a header that says something else."""
    if found.delivery != str(event.id):
        raise SignatureRefused(Reason.ID_DIFFERS)
    if found.event != event.type:
        raise SignatureRefused(Reason.TYPE_DIFFERS)
    return event
