"""One HTTP request, as our routes see it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

from holdfast.domain.access import Key
from holdfast.domain.precondition import UNCONDITIONAL, Precondition
from holdfast.domain.refusals import Fault
from holdfast.web.http.exchange import Exchange
from holdfast.web.refusals import BodyTooLarge, UnsupportedMediaType
from holdfast.web.request_ids import request_id_from

JSON = "application/json"
NO_ROUTE = "none"
BODY_LIMIT = 1024**2

_JSON_BYTES = JSON.encode()

_UTF_8 = ("utf-8", "utf8")


class Call:
    __slots__ = ("exchange", "headers", "known_key", "method", "parameters", "path", "request_id", "route")

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.method = exchange.method
        # As it was sent: only the parts of a path are decoded, each by itself.
        self.path = exchange.path.decode("latin-1")
        self.route = NO_ROUTE
        self.parameters: Mapping[str, str] | re.Match[str] = {}
        self.headers = exchange.head.values
        self.request_id = request_id_from(self.headers)
        self.known_key: Key | None = None

    @property
    def key(self) -> Key:
        """The caller's key, for routes behind the authentication."""
        assert self.known_key is not None
        return self.known_key

    @property
    def has_query(self) -> bool:
        return bool(self.exchange.query)

    def header_values(self, name: bytes) -> list[str]:
        if name not in self.headers:
            return []
        lines = self.exchange.head.lines
        if len(self.headers) == len(lines):
            return [self.headers[name].decode("latin-1")]
        return [value.decode("latin-1") for key, value in lines if key == name]

    def path_parameter(self, name: str) -> str | Fault:
        """Percent-decoded here and not before, so that ``%2F`` is a character and not a separator."""
        raw = self.parameters[name]
        if "%" not in raw and raw.isascii():
            return raw
        try:
            return unquote_to_bytes(raw.encode("latin-1")).decode("utf-8")
        except UnicodeDecodeError:
            return Fault(f"/path/{name}", "This part of the path is not UTF-8.")

    def query_items(self) -> list[tuple[str, str]]:
        text = self.exchange.query.decode("latin-1")
        return parse_qsl(text, keep_blank_values=True, errors="replace") if text else []

    def precondition(self) -> Precondition:
        if b"if-match" not in self.headers and b"if-none-match" not in self.headers:
            return UNCONDITIONAL
        return Precondition(
            match=self._revisions(b"if-match", weak_counts=False),
            none_match=self._revisions(b"if-none-match", weak_counts=True),
        )

    def require_media_type(self, accepted: Collection[str] = (JSON,)) -> str:
        """The body's media type, if it is one of those accepted."""
        sent = self.headers.get(b"content-type", b"")
        if sent == _JSON_BYTES and b"content-encoding" not in self.headers:
            return JSON
        media_type, *parameters = sent.decode("latin-1").split(";")
        media_type = media_type.strip().lower()
        encoded = self.headers.get(b"content-encoding", b"identity").strip().lower() != b"identity"
        if media_type not in accepted or encoded or not all(map(_is_utf_8, parameters)):
            raise UnsupportedMediaType(accepted)
        return media_type

    async def body(self, limit: int = BODY_LIMIT) -> bytes:
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > limit:
            raise BodyTooLarge(limit)
        first = await self.exchange.read()
        if self.exchange.body_is_whole and len(first) <= limit:
            return first
        parts = bytearray(first)
        while len(parts) <= limit:
            if not (part := await self.exchange.read()):
                return bytes(parts)
            parts += part
        raise BodyTooLarge(limit)

    def _revisions(self, name: bytes, *, weak_counts: bool) -> frozenset[str] | None:
        if name not in self.headers:
            return None
        tags = [tag.strip() for value in self.header_values(name) for tag in value.split(",")]
        if weak_counts:
            tags = [tag.removeprefix("W/") for tag in tags]
        return frozenset(tag if tag == "*" else tag[1:-1] for tag in tags if tag == "*" or _is_quoted(tag))


def asgi_scope(call: Call) -> dict[str, Any]:
    """The request, for what speaks ASGI."""
    return {
        "type": "http",
        # As of this version, whoever sends to a client that has left is told so.
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "method": call.method,
        "path": call.path,
        "query_string": call.exchange.query,
        "headers": call.exchange.head.lines,
    }


def _is_quoted(tag: str) -> bool:
    return len(tag) >= 2 and tag[0] == tag[-1] == '"'


def _is_utf_8(parameter: str) -> bool:
    name, _, value = parameter.strip().partition("=")
    return name.strip().lower() != "charset" or value.strip().strip('"').lower() in _UTF_8
