"""Many callers at once: requests are values, sent over connections that are open already."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from tests.support.server import PATIENCE_SECONDS


class Request(NamedTuple):
    method: str
    path: str
    credential: str | None = None
    body: object = None
    headers: tuple[tuple[str, str], ...] = ()

    def encoded(self) -> bytes:
        """A body of bytes is sent as it is, and its headers name its type."""
        content = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        content = b"" if self.body is None else content
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: holdfast.test"]
        if self.credential is not None:
            lines.append(f"Authorization: Bearer {self.credential}")
        if self.body is not None:
            lines += ["Content-Type: application/json"] * (not isinstance(self.body, bytes))
            lines += [f"Content-Length: {len(content)}"]
        elif self.method != "GET":
            lines.append("Content-Length: 0")
        lines += [f"{name}: {value}" for name, value in self.headers]
        return "\r\n".join([*lines, "", ""]).encode() + content


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def body(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.content)
        return document

    @property
    def reason(self) -> str | None:
        """Of a 409."""
        found: str | None = self.body.get("reason")
        return found


class Line:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, request: Request) -> Answer:
        self.send(request)
        return await self.answer()

    def send(self, request: Request) -> None:
        """On its way when this returns: the socket of a line that waits for nothing is never full."""
        self.send_bytes(request.encoded())

    def send_bytes(self, part: bytes) -> None:
        self._writer.write(part)

    async def answer(self, seconds: float = PATIENCE_SECONDS) -> Answer:
        async with asyncio.timeout(seconds):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *rest = head.rstrip("\r\n").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
            }
            content = await self._content(headers)
        if headers.get("connection") == "close":
            self.close()
        return Answer(int(first.split(" ")[1]), headers, content)

    async def _content(self, headers: dict[str, str]) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            return await self._reader.readexactly(int(headers.get("content-length", 0)))
        content = b""
        while length := int(await self._reader.readline(), 16):
            content += (await self._reader.readexactly(length + 2))[:-2]
        await self._reader.readline()
        return content

    @property
    def is_open(self) -> bool:
        """As far as is known: what the other side has closed a moment ago may still look open."""
        return not self._writer.is_closing() and not self._reader.at_eof()

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        """Close at once, whatever is still to be sent."""
        self._writer.transport.abort()


async def open_line(address: str) -> Line:
    parts = urlsplit(address)
    return Line(*await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 24))


@asynccontextmanager
async def open_lines(address: str, count: int) -> AsyncIterator[list[Line]]:
    parts = urlsplit(address)
    opened = await asyncio.gather(
        *(asyncio.open_connection(parts.hostname, parts.port, limit=1 << 24) for _ in range(count))
    )
    lines = [Line(reader, writer) for reader, writer in opened]
    try:
        yield lines
    finally:
        for line in lines:
            line.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in opened), return_exceptions=True)


async def salvo(lines: Sequence[Line], requests: Sequence[Request]) -> list[Answer]:
    """All are sent before the first answer is read."""
    for line, request in zip(lines, requests, strict=True):
        line.send(request)
    return list(await asyncio.gather(*(line.answer() for line in lines)))


def ask_once(address: str, request: Request) -> Answer:
    """For tests that go step by step."""

    async def ask() -> Answer:
        async with open_lines(address, 1) as (line,):
            return await line.ask(request)

    return asyncio.run(ask())
