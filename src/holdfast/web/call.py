"""One HTTP request, as our routes see it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Protocol
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.types import Receive, Scope

from holdfast.domain.access import Key
from holdfast.domain.precondition import UNCONDITIONAL, Precondition
from holdfast.domain.refusals import Fault
from holdfast.web.refusals import BodyTooLarge, ClientGone, UnsupportedMediaType
from holdfast.web.request_ids import request_id_from

JSON = "application/json"
NO_ROUTE = "none"
SHORTCUT = "holdfast.shortcut"
"""The place of the ``Shortcut`` in the scope of a request."""

_JSON_BYTES = JSON.encode()
BODY_LIMIT = 1024**2

_UTF_8 = ("utf-8", "utf8")


class Shortcut(Protocol):
    """Past ASGI, where our own HTTP protocol serves the request."""

    def received(self) -> bytes | None:
        """The body, if all of it has come."""
        ...

    def send(self, status: int, lines: bytes, body: bytes) -> bool:
        """Sends all of an answer at once; False if that is not possible, and nothing was sent."""
        ...


class Call:
    __slots__ = (
        "headers",
        "known_key",
        "method",
        "parameters",
        "path",
        "receive",
        "request_id",
        "route",
        "scope",
        "shortcut",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        self.receive = receive
        self.method: str = scope["method"]
        # As it was sent: only the parts of a path are decoded, each by itself.
        self.path: str = scope["raw_path"].decode("latin-1")
        self.route = NO_ROUTE
        self.parameters: Mapping[str, str] | re.Match[str] = {}
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.request_id = request_id_from(self.headers)
        self.known_key: Key | None = None
        self.shortcut: Shortcut | None = scope.get(SHORTCUT)

    @property
    def key(self) -> Key:
        """The caller's key, for routes behind the authentication."""
        assert self.known_key is not None
        return self.known_key

    @property
    def has_query(self) -> bool:
        return bool(self.scope["query_string"])

    def header_values(self, name: bytes) -> list[str]:
        if name not in self.headers:
            return []
        if len(self.headers) == len(self.scope["headers"]):
            return [self.headers[name].decode("latin-1")]
        return [value.decode("latin-1") for key, value in self.scope["headers"] if key == name]

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
        text = self.scope["query_string"].decode("latin-1")
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
        if self.shortcut is not None and (received := self.shortcut.received()) is not None:
            return _within(received, limit)
        message = await self.receive()
        parts = bytearray()
        while message["type"] == "http.request":
            parts += message.get("body", b"")
            if len(parts) > limit:
                raise BodyTooLarge(limit)
            if not message.get("more_body", False):
                return bytes(parts)
            message = await self.receive()
        raise ClientGone

    def _revisions(self, name: bytes, *, weak_counts: bool) -> frozenset[str] | None:
        if name not in self.headers:
            return None
        tags = [tag.strip() for value in self.header_values(name) for tag in value.split(",")]
        if weak_counts:
            tags = [tag.removeprefix("W/") for tag in tags]
        return frozenset(tag if tag == "*" else tag[1:-1] for tag in tags if tag == "*" or _is_quoted(tag))


def _is_quoted(tag: str) -> bool:
    return len(tag) >= 2 and tag[0] == tag[-1] == '"'


def _is_utf_8(parameter: str) -> bool:
    name, _, value = parameter.strip().partition("=")
    return name.strip().lower() != "charset" or value.strip().strip('"').lower() in _UTF_8


def _within(body: bytes, limit: int) -> bytes:
    if len(body) > limit:
        raise BodyTooLarge(limit)
    return body
