"""Starlette's request with exact path parameters, limited bodies and the caller."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection
from functools import cached_property
from typing import TYPE_CHECKING, cast
from urllib.parse import parse_qsl, unquote_to_bytes

from starlette.requests import ClientDisconnect
from starlette.requests import Request as StarletteRequest

from holdfast.domain.api_key import Key
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.decision import UNCONDITIONAL, Precondition
from holdfast.domain.errors import Fault
from holdfast.web.errors import (
    BodyTooLarge,
    QueryTooLarge,
    TooManyParameters,
    TwoCredentials,
    UnsupportedMediaType,
)

if TYPE_CHECKING:
    from holdfast.web.client_address import Client
    from holdfast.web.context import WebContext
    from holdfast.wiring import Services

JSON = "application/json"
NO_ROUTE = "none"
"""In logs and metrics, of a path that is not there."""
BODY_LIMIT = 1024**2
PUBLIC_BODY_LIMIT = 16 * 1024
MAX_QUERY_PARAMETERS = 200
QUERY_LIMIT = PUBLIC_BODY_LIMIT

_UTF_8 = ("utf-8", "utf8")
_TAG = re.compile(r'\*|".*"')


class Request(StarletteRequest):
    """``path_params`` are as they were sent, percent-encoded: see ``path_parameter``."""

    whole_body: bytes | None = None

    @property
    def header_values(self) -> dict[bytes, bytes]:
        """By name in lower case; the last one where a name is given twice."""
        return cast("dict[bytes, bytes]", self.scope["state"]["headers"])

    def header(self, name: bytes) -> str:
        return self.header_values.get(name, b"").decode("latin-1")

    @property
    def context(self) -> WebContext:
        return cast("WebContext", self.scope["app"].state["context"])

    @property
    def services(self) -> Services:
        return self.context.services

    @property
    def stopping(self) -> asyncio.Event:
        """Set when the server begins to stop: responses without an end of their own end then."""
        return cast("asyncio.Event", self.scope["app"].state.stopping)

    @property
    def request_id(self) -> str:
        return cast("str", self.scope["state"]["request_id"])

    @property
    def path(self) -> str:
        """Percent-encoded, as it was sent."""
        return cast("str", self.scope["path"])

    @property
    def raw_query(self) -> bytes:
        return cast("bytes", self.scope["query_string"])

    @cached_property
    def client_address(self) -> Client:
        """The address that the request comes from, as trusted proxies forward it."""
        return self.context.addresses.find(self.scope)

    @property
    def key(self) -> Key:
        return cast("Key", self.scope["state"]["key"])

    @property
    def author(self) -> Author:
        return Author(ActorKind.KEY, str(self.key.id), self.request_id)

    def bearer_token(self) -> str | None:
        headers, values = self.scope["headers"], self.header_values
        if b"authorization" not in values:
            return None
        if len(headers) > len(values) and [name for name, _ in headers].count(b"authorization") > 1:
            raise TwoCredentials
        scheme, _, token = values[b"authorization"].decode("latin-1").partition(" ")
        return (token.strip() or None) if scheme.lower() == "bearer" else None

    @property
    def precondition(self) -> Precondition:
        headers = self.header_values
        if b"if-match" not in headers and b"if-none-match" not in headers:
            return UNCONDITIONAL
        return Precondition(
            self._revisions(b"if-match", weak_counts=False),
            self._revisions(b"if-none-match", weak_counts=True),
        )

    def has_revision(self, revision: str) -> bool:
        """Return whether the client has this revision already (``If-None-Match``)."""
        known = self.precondition.none_match
        return known is not None and (revision in known or "*" in known)

    def path_parameter(self, name: str) -> str | Fault:
        """Percent-decoded here and not before, so that ``%2F`` is a character and not a separator."""
        raw: str = self.scope["path_params"][name]
        if "%" not in raw and raw.isascii():
            return raw
        try:
            return unquote_to_bytes(raw.encode("latin-1")).decode("utf-8")
        except UnicodeDecodeError:
            return Fault(f"/path/{name}", "This part of the path is not UTF-8.")

    @property
    def query_error(self) -> BodyTooLarge | None:
        if self.raw_query.count(b"&") >= MAX_QUERY_PARAMETERS:
            return TooManyParameters(MAX_QUERY_PARAMETERS)
        return QueryTooLarge(QUERY_LIMIT) if len(self.raw_query) > QUERY_LIMIT else None

    def check_query(self) -> None:
        if (error := self.query_error) is not None:
            raise error

    def query_items(self) -> list[tuple[str, str]]:
        """Bytes that are not UTF-8 come as lone surrogates."""
        query = self.raw_query
        if not query:
            return []
        self.check_query()
        text = query.decode("utf-8", "surrogateescape")
        return parse_qsl(text, keep_blank_values=True, errors="surrogateescape")

    def require_media_type(self, accepted: Collection[str] = (JSON,)) -> str:
        headers = self.header_values
        content_type = headers.get(b"content-type", b"").decode("latin-1")
        if content_type in accepted and b"content-encoding" not in headers:
            return content_type
        media_type, *parameters = content_type.split(";")
        media_type = media_type.strip().lower()
        is_encoded = headers.get(b"content-encoding", b"identity").strip().lower() != b"identity"
        if media_type not in accepted or is_encoded or not all(map(_is_utf_8, parameters)):
            raise UnsupportedMediaType(accepted)
        return media_type

    def check_announced_length(self, limit: int) -> int:
        length = self.header_values.get(b"content-length", b"0")
        if length.isdigit() and int(length) > limit:
            raise BodyTooLarge(limit)
        return int(length) if length.isdigit() else 0

    async def read_body(self, limit: int = BODY_LIMIT, reserve: Callable[..., None] | None = None) -> bytes:
        """Read the whole body, or reject it as soon as it is too large, or as ``reserve`` does."""
        if self.whole_body is None:
            announced = self.check_announced_length(limit)
            # Not through Starlette's stream, an asynchronous generator: most bodies come in one message.
            body, is_more = bytearray(), True
            while is_more:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                body += message.get("body", b"")
                is_more = message.get("more_body", False)
                if len(body) > limit:
                    raise BodyTooLarge(limit)
                if reserve is not None:
                    reserve(len(body), announced)
            self.whole_body = bytes(body)
        return self.whole_body

    def _revisions(self, name: bytes, *, weak_counts: bool) -> frozenset[str] | None:
        values = [value.decode("latin-1") for key, value in self.scope["headers"] if key == name]
        if not values:
            return None
        tags = [tag.strip() for value in values for tag in value.split(",")]
        if weak_counts:
            tags = [tag.removeprefix("W/") for tag in tags]
        return frozenset(tag if tag == "*" else tag[1:-1] for tag in tags if _TAG.fullmatch(tag))


def _is_utf_8(parameter: str) -> bool:
    name, _, value = parameter.strip().partition("=")
    return name.strip().lower() != "charset" or value.strip().strip('"').lower() in _UTF_8
