"""The base of JSON documents, and the types that their fields have in common.

A document is defined once, for the API, its OpenAPI description and the commands that print JSON. A text in
the ``Annotated`` type of a field is its description.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

from holdfast.domain.errors import Message
from holdfast.domain.wire_format import format_timestamp

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]


class Document(msgspec.Struct, rename="camel", gc=False, kw_only=False):
    """A JSON object; camelCase on the wire."""

    @classmethod
    def fill(cls, source: Any, **values: Any) -> Self:
        """Make a document of ``values``, and for the rest of the attributes of the same names."""
        rest = (name for name in cls.__struct_fields__ if name not in values)
        return cls(**values, **{name: _as_json(getattr(source, name)) for name in rest})


def _as_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_timestamp(value)
    return str(value) if isinstance(value, Message) else value
