"""Messages as columns: their English text, and beside it as JSON what a translation needs."""

from __future__ import annotations

import msgspec

from holdfast.domain.message import AnyMessage, Message


def message_json(message: AnyMessage | None) -> str | None:
    """Return the id and parameters as JSON; None if there are no parameters, for then the text is the id."""
    return msgspec.json.encode(message).decode() if isinstance(message, Message) else None


def read_message(text: str, encoded: str | None) -> AnyMessage:
    """Return the message of a text and of its ``message_json``, which rows of older releases do not have."""
    return text if encoded is None else msgspec.json.decode(encoded, type=Message)


def read_optional_message(text: str | None, encoded: str | None) -> AnyMessage | None:
    return None if text is None else read_message(text, encoded)
