"""The four headers of a delivery, out of whatever a framework calls headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Union

from holdfast_webhooks.refused import Reason, SignatureRefused

Text = Union[str, bytes]
# Mapping is invariant in its key, so that of a Mapping of str and one of bytes are named each.
Headers = Union[Mapping[str, Any], Mapping[bytes, Any], Iterable[tuple[Text, Text]]]
_NAMES = {
    "x-service-event": "event",
    "x-service-delivery": "delivery",
    "x-service-timestamp": "timestamp",
    "x-service-signature": "signature",
}


class DeliveryHeaders(NamedTuple):
    event: str | None = None
    delivery: str | None = None
    timestamp: str | None = None
    signature: str | None = None


def delivery_headers(headers: Headers) -> DeliveryHeaders:
    found: dict[str, str] = {}
    for name, value in _pairs(headers):
        field = _NAMES.get(_text(name).lower())
        if field in found:
            # Which of the two was signed is for nobody to guess.
            raise SignatureRefused(Reason.HEADER_REPEATED, f"The header {_text(name)} stands there twice.")
        if field is not None:
            found[field] = _text(value).strip(" \t")
    return DeliveryHeaders(**found)


def _pairs(headers: Headers) -> Iterable[tuple[Any, Any]]:
    """Not only mappings have items: `http.client.HTTPMessage` iterates over names alone."""
    source: Any = headers
    pairs: Iterable[tuple[Any, Any]] = source.items() if hasattr(source, "items") else source
    return pairs


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, str):
        return value
    raise TypeError(f"A header's name and value are str or bytes, not {type(value).__name__}.")
