"""Messages for people, kept as an id and parameters so that pages can translate them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence with values in it. Its text is English; ``web.html.translation`` writes other languages."""

    id: str
    """The English text with ``%(name)s`` for each parameter, as in gettext."""
    parameters: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __str__(self) -> str:
        return self.id % self.parameters if self.parameters else self.id


AnyMessage = Message | str
"""A plain text is a message without parameters: it is its own id."""


def optional_text(message: AnyMessage | None) -> str | None:
    """Return the English text."""
    return None if message is None else str(message)


class MessageError(Exception):
    """An error whose text is a message."""

    def __init__(self, message: AnyMessage) -> None:
        super().__init__(message)
        self.message = message
