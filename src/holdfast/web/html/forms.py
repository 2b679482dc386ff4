"""What a form of ours sends back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl

from holdfast.web.refusals import MalformedBody, TooManyFields
from holdfast.web.request import BODY_LIMIT, Request

URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"

PUBLIC_FIELDS = 200
"""At most so many in a form that needs no sign-in."""
SIGNED_IN_FIELDS = 20_000


class Upload(NamedTuple):
    filename: str
    content: bytes


class Form:
    """Fields by name; what was not sent is empty text."""

    def __init__(self, fields: Sequence[tuple[str, str]], uploads: dict[str, Upload] | None = None) -> None:
        self._fields = fields
        self._uploads = uploads or {}

    def text(self, name: str) -> str:
        """Without the spaces that nobody meant to type."""
        return self.raw(name).strip()

    def raw(self, name: str) -> str:
        return next((value for key, value in self._fields if key == name), "")

    def all(self, name: str) -> list[str]:
        return [value for key, value in self._fields if key == name]

    def has(self, name: str) -> bool:
        return any(key == name for key, _ in self._fields)

    def upload(self, name: str) -> Upload | None:
        return self._uploads.get(name)

    def items(self) -> Sequence[tuple[str, str]]:
        return self._fields


def url_fields(text: bytes, at_most: int = PUBLIC_FIELDS) -> list[tuple[str, str]]:
    """Return the fields of a form or a query. A NUL or broken UTF-8 is no text that anybody typed."""
    if b"%00" in text or b"\x00" in text:
        raise MalformedBody("The form holds a character that cannot be kept.")
    if text.count(b"&") >= at_most:
        raise TooManyFields(at_most)
    try:
        return parse_qsl(text.decode("utf-8"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise MalformedBody("The form is not UTF-8.") from None


async def read_form(request: Request, limit: int = BODY_LIMIT, fields: int = SIGNED_IN_FIELDS) -> Form:
    sent_as = request.header_values.get(b"content-type", b"").decode("latin-1")
    if sent_as.split(";")[0].strip().lower() == MULTIPART:
        from holdfast.web.html.uploads import read_multipart

        return await read_multipart(request, limit, fields)
    request.require_media_type((URLENCODED,))
    return Form(url_fields(await request.read_body(limit), fields))
