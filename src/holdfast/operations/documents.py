"""The base of JSON documents, and the types that their fields have in common.

A document is defined once, for the API, its OpenAPI description and the commands that print JSON.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from holdfast.domain.spelling import format_timestamp

Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]


class Document(msgspec.Struct, rename="camel", gc=False, kw_only=False):
    """A JSON object; camelCase on the wire."""


def optional_moment_text(moment: datetime | None) -> str | None:
    return None if moment is None else format_timestamp(moment)
