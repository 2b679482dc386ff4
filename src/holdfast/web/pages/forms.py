"""Forms: parsed within limits, uploads, amounts, and CSRF tokens."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import parse_qsl

from python_multipart import FormParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import Field, File, parse_options_header

from holdfast.web.errors import BodyTooLarge, ForeignForm, MalformedBody, TooManyFields
from holdfast.web.request import BODY_LIMIT, Request

# Digits of any script, with or without separators between thousands.
_AMOUNT = re.compile(r"\d{1,15}(\.\d{1,4})?")
_SEPARATORS = str.maketrans(
    {",": None, "٬": None, " ": None, "\N{NO-BREAK SPACE}": None, "\N{ARABIC DECIMAL SEPARATOR}": "."}
)


def parse_amount(text: str) -> Decimal | None:
    plain = text.translate(_SEPARATORS)
    return Decimal(plain) if _AMOUNT.fullmatch(plain) else None


def parse_whole_number(text: str, most: int = 10**18) -> int | None:
    is_number = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    return int(text) if is_number and int(text) <= most else None


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
        """Return the first value of a field, without spaces at either end."""
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


def parse_fields(text: bytes, at_most: int = PUBLIC_FIELDS) -> list[tuple[str, str]]:
    """Return the fields of a form or a query. A NUL or broken UTF-8 is no text that anybody typed."""
    if b"%00" in text or b"\x00" in text:
        raise MalformedBody("The form contains a character that cannot be stored.")
    if text.count(b"&") >= at_most:
        raise TooManyFields(at_most)
    try:
        return parse_qsl(text.decode("utf-8"), keep_blank_values=True, errors="strict")
    except ValueError:
        raise MalformedBody("The form is not UTF-8.") from None


async def read_form(request: Request, limit: int = BODY_LIMIT, fields: int = SIGNED_IN_FIELDS) -> Form:
    content_type = request.header(b"content-type")
    # Only a form with a file is larger than others.
    if limit > BODY_LIMIT and content_type.split(";")[0].strip().lower() == MULTIPART:
        if len(content_type) > _LONGEST_PART_HEADER:
            raise MalformedBody("The form is not in the format that browsers send.")
        return await read_multipart(request, limit, PUBLIC_FIELDS)
    request.require_media_type((URLENCODED,))
    return Form(parse_fields(await request.read_body(limit), fields))


# Forms with files, as browsers send them (RFC 7578).

_LONGEST_NAME = 255
_LONGEST_PART_HEADER = 1024
"""Browsers send less, and the parser takes as much time for it as for 64 KiB of content."""


async def read_multipart(request: Request, limit: int, at_most: int) -> Form:
    """Parse a form while it arrives; ``limit`` is that of the whole body."""
    request.check_announced_length(limit)
    parts: list[Field | File] = []
    ended = asyncio.Event()
    read = 0

    def add(part: Field | File) -> None:
        if len(parts) >= at_most:
            raise TooManyFields(at_most)
        parts.append(part)

    try:
        _, options = parse_options_header(request.header_values[b"content-type"])
        boundary = options.get(b"boundary")
        if not boundary:
            raise MalformedBody("The form is not in the format that browsers send.")
        # The whole file stays in memory, where it is checked.
        config = {
            "MAX_MEMORY_FILE_SIZE": limit,
            "MAX_HEADER_SIZE": _LONGEST_PART_HEADER,
            "UPLOAD_ERROR_ON_BAD_CTE": True,
        }
        parser = FormParser(MULTIPART, add, add, ended.set, boundary, config=config)
        async for piece in request.stream():
            read += len(piece)
            if read > limit:
                raise BodyTooLarge(limit)
            parser.write(piece)
            # Other requests have their turn.
            await asyncio.sleep(0)
        parser.finalize()
        if not ended.is_set():
            raise MalformedBody("The form is incomplete.")
        return _parsed_form(parts)
    except (FormParserError, UnicodeDecodeError):
        raise MalformedBody("The form is not in the format that browsers send.") from None


def _parsed_form(parts: Sequence[Field | File]) -> Form:
    fields: list[tuple[str, str]] = []
    uploads: dict[str, Upload] = {}
    for part in parts:
        name = (part.field_name or b"").decode()
        if isinstance(part, File):
            part.file_object.seek(0)
            # Without the directory that some browsers send, and without control characters.
            filename = (part.file_name or b"").decode(errors="replace").replace("\\", "/").rpartition("/")[2]
            printable = "".join(filter(str.isprintable, filename))[:_LONGEST_NAME]
            uploads[name] = Upload(printable, part.file_object.read())
            continue
        value = (part.value or b"").decode()
        if "\x00" in name + value:
            raise MalformedBody("The form contains a character that cannot be stored.")
        fields.append((name, value))
    return Form(fields, uploads)


# CSRF protection: other sites can make a browser send a form, but cannot read the token in ours.

_OWN_SITE = frozenset({b"same-origin", b"none"})
_SIZE = hashlib.sha256().digest_size


def csrf_token(secret: str) -> str:
    """Return what a form must send back. It follows from the secret of a cookie and tells nothing of it.

    It is masked anew for each response: pages are compressed, and the length of a compressed page must not
    tell of a token that stays the same (BREACH).
    """
    mask = secrets.token_bytes(_SIZE)
    return (mask + _xor(mask, _digest(secret))).hex()


def is_csrf_token(sent: str, secret: str) -> bool:
    try:
        masked = bytes.fromhex(sent)
    except ValueError:
        return False
    return hmac.compare_digest(_xor(masked[:_SIZE], masked[_SIZE:]), _digest(secret))


def is_of_own_site(request: Request) -> bool:
    """Whether the browser says that a page of ours sent the request, or a person."""
    return request.header_values.get(b"sec-fetch-site", b"none") in _OWN_SITE


def check_csrf(request: Request, form: Form, secret: str) -> None:
    if not is_of_own_site(request) or not is_csrf_token(form.raw("csrf"), secret):
        raise ForeignForm


def _digest(secret: str) -> bytes:
    return hashlib.sha256(b"csrf:" + secret.encode()).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))
