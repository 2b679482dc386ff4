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
        content = b"" if self.body is None else json.dumps(self.body).encode()
        lines = [f"{self.method} {self.path} HTTP/1.1", "Host: holdfast.test"]
        if self.credential is not None:
            lines.append(f"Authorization: Bearer {self.credential}")
        if self.body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(content)}"]
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
        self._writer.write(request.encoded())

    async def answer(self) -> Answer:
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *rest = head.rstrip("\r\n").split("\r\n")
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)
            }
            content = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(int(first.split(" ")[1]), headers, content)

    def close(self) -> None:
        self._writer.close()


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
