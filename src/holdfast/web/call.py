"""One HTTP request, as our routes see it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

from holdfast.domain.access import Key
from holdfast.domain.precondition import UNCONDITIONAL, Precondition
from holdfast.domain.refusals import Fault
from holdfast.web.http.exchange import Exchange
from holdfast.web.http.heads import Head
from holdfast.web.refusals import BodyTooLarge, UnsupportedMediaType
from holdfast.web.request_ids import is_sane, new_request_id

if TYPE_CHECKING:
    from holdfast.web.client_address import Client

JSON = "application/json"
NO_ROUTE = "none"
BODY_LIMIT = 1024**2

_UTF_8 = ("utf-8", "utf8")


class _Preamble(NamedTuple):
    """What the header lines say, whatever the request is about."""

    request_id: str | None
    tokens: tuple[str | None, ...]
    """One for each Authorization line; None if it is no bearer token."""
    precondition: Precondition
    is_plain_json: bool
    length: int
    """That is announced."""


class Call:
    __slots__ = (
        "_preamble", "client", "exchange", "known_key", "method", "parameters", "path", "request_id", "route",
    )  # fmt: skip

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.method = exchange.method
        # As it was sent: only the parts of a path are decoded, each by itself.
        self.path = exchange.path.decode("latin-1")
        self.route = NO_ROUTE
        self.parameters: Mapping[str, str] | re.Match[str] = {}
        preamble: _Preamble | None = exchange.head.notes
        if preamble is None:
            preamble = exchange.head.notes = _preamble(exchange.head)
        self._preamble = preamble
        self.request_id = preamble.request_id or new_request_id()
        self.known_key: Key | None = None
        self.client: Client | None = None
        """Where it comes from, once somebody has asked."""

    @property
    def key(self) -> Key:
        """The caller's key, for routes behind the authentication."""
        assert self.known_key is not None
        return self.known_key

    @property
    def has_query(self) -> bool:
        return bool(self.exchange.query)

    @property
    def tokens(self) -> tuple[str | None, ...]:
        return self._preamble.tokens

    @property
    def precondition(self) -> Precondition:
        return self._preamble.precondition

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
        """Bytes that are not UTF-8 come as lone surrogates, for ``queries`` to refuse."""
        if not self.exchange.query:
            return []
        text = self.exchange.query.decode("utf-8", "surrogateescape")
        return parse_qsl(text, keep_blank_values=True, errors="surrogateescape")

    def require_media_type(self, accepted: Collection[str] = (JSON,)) -> str:
        """The body's media type, if it is one of those accepted."""
        if self._preamble.is_plain_json:
            return JSON
        headers = self.exchange.head.values
        media_type, *parameters = headers.get(b"content-type", b"").decode("latin-1").split(";")
        media_type = media_type.strip().lower()
        encoded = headers.get(b"content-encoding", b"identity").strip().lower() != b"identity"
        if media_type not in accepted or encoded or not all(map(_is_utf_8, parameters)):
            raise UnsupportedMediaType(accepted)
        return media_type

    async def body(self, limit: int = BODY_LIMIT) -> bytes:
        if self._preamble.length > limit:
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


def _preamble(head: Head) -> _Preamble:
    sent_id = head.values.get(b"x-request-id")
    return _Preamble(
        request_id=sent_id.decode() if sent_id is not None and is_sane(sent_id) else None,
        tokens=tuple(_bearer_token(value) for name, value in head.lines if name == b"authorization"),
        precondition=_precondition(head),
        is_plain_json=head.values.get(b"content-type") == JSON.encode()
        and b"content-encoding" not in head.values,
        length=int(head.values.get(b"content-length", b"0")),
    )


def _bearer_token(value: bytes) -> str | None:
    scheme, _, token = value.decode("latin-1").partition(" ")
    return (token.strip() or None) if scheme.lower() == "bearer" else None


def _precondition(head: Head) -> Precondition:
    match = _revisions(head, b"if-match", weak_counts=False)
    none_match = _revisions(head, b"if-none-match", weak_counts=True)
    return UNCONDITIONAL if match is none_match is None else Precondition(match, none_match)


def _revisions(head: Head, name: bytes, *, weak_counts: bool) -> frozenset[str] | None:
    values = [value.decode("latin-1") for key, value in head.lines if key == name]
    if not values:
        return None
    tags = [tag.strip() for value in values for tag in value.split(",")]
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
