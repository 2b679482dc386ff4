"""Forms with files, as browsers send them (RFC 7578)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from holdfast.web.html.forms import Form, Upload
from holdfast.web.refusals import BodyTooLarge, MalformedBody, TooManyFields
from holdfast.web.request import Request

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

# Other requests have their turn after so many bytes.
_BYTES_A_TURN = 1024**2
_LONGEST_NAME = 255


async def read_multipart(request: Request, limit: int, fields: int) -> Form:
    """Parsed as it comes; ``limit`` is that of the whole body."""
    request.refuse_announced_length(limit)
    parts = _Parts(fields)
    read = turn = 0
    try:
        parser = MultipartParser(_boundary(request), parts.callbacks())
        async for piece in request.stream():
            read += len(piece)
            if read > limit:
                raise BodyTooLarge(limit)
            parser.write(piece)
            if read - turn > _BYTES_A_TURN:
                turn = read
                await asyncio.sleep(0)
        parser.finalize()
    except (FormParserError, UnicodeDecodeError):
        raise MalformedBody("The form is not what a browser sends.") from None
    return parts.form()


def _boundary(request: Request) -> bytes:
    _, options = parse_options_header(request.header_values[b"content-type"])
    boundary = options.get(b"boundary")
    if not boundary:
        raise MalformedBody("The form does not say where its parts end.")
    return boundary


class _Parts:
    def __init__(self, at_most: int) -> None:
        self._at_most = at_most
        self._fields: list[tuple[str, str]] = []
        self._uploads: dict[str, Upload] = {}
        self._header = bytearray()
        self._value = bytearray()
        self._disposition = b""
        self._content = bytearray()
        self._is_whole = False

    def callbacks(self) -> MultipartCallbacks:
        return {
            "on_part_begin": self._begin,
            "on_header_field": self._extend_header,
            "on_header_value": self._extend_value,
            "on_header_end": self._end_header,
            "on_part_data": self._extend_content,
            "on_part_end": self._end,
            "on_end": self._finish,
        }

    def form(self) -> Form:
        if not self._is_whole:
            raise MalformedBody("The form ends in the middle.")
        return Form(self._fields, self._uploads)

    def _begin(self) -> None:
        if len(self._fields) + len(self._uploads) >= self._at_most:
            raise TooManyFields(self._at_most)
        self._disposition = b""
        self._content = bytearray()

    def _extend_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _extend_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _extend_content(self, data: bytes, start: int, end: int) -> None:
        self._content += data[start:end]

    def _end(self) -> None:
        _, options = parse_options_header(self._disposition)
        name = options.get(b"name", b"").decode()
        if b"filename" in options:
            self._uploads[name] = Upload(_file_name(options[b"filename"]), bytes(self._content))
            return
        value = self._content.decode()
        if "\x00" in name + value:
            raise MalformedBody("The form holds a character that cannot be kept.")
        self._fields.append((name, value))

    def _finish(self) -> None:
        self._is_whole = True


def _file_name(sent: bytes) -> str:
    """Without the folder that some browsers tell, and fit to be shown."""
    name = sent.decode(errors="replace").replace("\\", "/").rpartition("/")[2]
    return "".join(character for character in name if character.isprintable())[:_LONGEST_NAME]
