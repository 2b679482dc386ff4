"""Messages as columns: their English text, and beside it as JSON what a translation needs."""

from __future__ import annotations

import msgspec

from holdfast.domain.message import AnyMessage, Message


def encode_message(message: AnyMessage | None) -> str | None:
    """Return the id and parameters as JSON; None if there are no parameters, for then the text is the id."""
    return msgspec.json.encode(message).decode() if isinstance(message, Message) else None


def decode_message(text: str, encoded: str | None) -> AnyMessage:
    """Rows of older releases have the text alone."""
    return text if encoded is None else msgspec.json.decode(encoded, type=Message)


def decode_optional_message(text: str | None, encoded: str | None) -> AnyMessage | None:
    return None if text is None else decode_message(text, encoded)
