"""The network between Holdfast and its databases, and between the databases: relays that a fault disturbs."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from tests.support.relay import Connection, End, Relay

When = Literal["before", "in", "after"]
"""Before the server gets the commit; when it has got it; when it has answered, and nobody knows of it."""

NAMES = ("one", "two")
FOREGROUND = "holdfast"

SERVER_NOTICES_SECONDS = 10.0
"""After this, the server's side of a lost connection ends. A server that is reached through a Unix socket has
no keepalives. Those that Holdfast sets take 30 s, in which the sessions that faults leave behind would use up
what a server allows."""

_WRITES = re.compile(rb"\binsert\s+into\b|\bdelete\s+from\b|(?<!for )(?<!key )\bupdate\s+\w", re.IGNORECASE)
_READY_FOR_QUERY = b"Z\0\0\0\x05"


class Link(Relay):
    """The way to one PostgreSQL server. It keeps its port while the server comes and goes."""

    def __init__(self) -> None:
        super().__init__("")
        self.reserve_port()
        self.cuts: Counter[When] = Counter()
        """How many connections were cut at a commit."""
        self.swallows_new = False
        """Let new connections be accepted, and never answered."""
        self.swallowed = 0
        self.cutting: When | None = None
        self.cuts_only: str | None = None

    def use_server(self, path: Path) -> None:
        self._server = str(path)

    def cut_at(self, when: When | None, *, application: str | None = FOREGROUND) -> None:
        """Cut the connection that commits next, of sessions with this application name only; None disarms."""
        self.cutting, self.cuts_only = when, application
        if when is None:
            for connection in list(self.connections):
                if isinstance(connection, _Session):
                    connection.hand_over_answer()

    def is_cutting(self, application: str) -> bool:
        return self.cutting is not None and self.cuts_only in (None, application)

    def lose(self, connections: Iterable[Connection]) -> None:
        """Let neither side of them get another packet."""
        for connection in connections:
            connection.lose()
            self._end_later(connection)

    def close_clients(self) -> int:
        """Close the side of Holdfast only: the server goes on with every session."""
        found = self.current_connections()
        for connection in found:
            connection.is_lost = True
            connection.client.reset()
            self._end_later(connection)
        return len(found)

    def current_connections(self) -> list[Connection]:
        """Return those that work, in the order of their clients' ports."""
        found = [one for one in self.connections if not one.is_lost and one.client.transport is not None]
        return sorted(found, key=lambda one: one.client.peer_port)

    async def heal(self) -> None:
        self.cut_at(None)
        self.swallows_new = False
        self.go_on()
        await self.accept()

    def _end_later(self, connection: Connection) -> None:
        asyncio.get_running_loop().call_later(SERVER_NOTICES_SECONDS, connection.server.reset)


class _Session(Connection):
    """Knows which messages of its client commit something: COMMIT, and statements that write outside of a
    transaction, from Bind to Sync."""

    relay: Link

    def __init__(self, relay: Link) -> None:
        super().__init__(relay)
        self._is_swallowed = relay.swallows_new
        self._application = ""
        self._incomplete = b""
        self._writing_statements: set[bytes] = set()
        self._in_transaction = False
        self._cutting: When | None = None
        self._withheld_answer = b""

    def received(self, end: End, data: bytes) -> None:
        if not self._is_swallowed:
            super().received(end, data)
        elif data:
            self.relay.swallowed += 1

    def greeted(self, greeting: bytes) -> None:
        names = greeting[8:].split(b"\0")
        if b"application_name" in names:
            self._application = names[names.index(b"application_name") + 1].decode()
        super().greeted(greeting)

    def to_server(self, data: bytes) -> None:
        data, place = self._incomplete + data, 0
        while place + 5 <= len(data):
            end = place + 1 + int.from_bytes(data[place + 1 : place + 5])
            if end > len(data):
                break
            kind = data[place : place + 1]
            if self._commits(kind, data[place + 5 : end]) and self._begins_cut() == "before":
                self._cut(data[:place])
                return
            place = end
            if self._cutting == "in" and kind in (b"Q", b"S"):
                self._cut(data[:place])
                return
        self._incomplete = data[place:]
        if place:
            self.server.give(data[:place])

    def to_client(self, data: bytes) -> None:
        if self._cutting != "after":
            self.client.give(data)
            return
        self._withheld_answer += data
        if self._withheld_answer[-6:-1] == _READY_FOR_QUERY:
            self._cut(b"")

    def hand_over_answer(self) -> None:
        """Go on without a cut."""
        self._cutting = None
        if self._withheld_answer:
            self.client.give(self._withheld_answer)
            self._withheld_answer = b""

    def _begins_cut(self) -> When | None:
        if self._cutting is not None or not self.relay.is_cutting(self._application):
            return None
        self._cutting, self.relay.cutting = self.relay.cutting, None
        return self._cutting

    def _cut(self, last: bytes) -> None:
        assert self._cutting is not None
        self.relay.cuts[self._cutting] += 1
        if last:
            self.server.give(last)
        self.abort()

    def _commits(self, kind: bytes, body: bytes) -> bool:
        if kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            if _WRITES.search(text):
                self._writing_statements.add(name)
            else:
                self._writing_statements.discard(name)
        elif kind == b"B":
            return not self._in_transaction and body.split(b"\0", 2)[1] in self._writing_statements
        elif kind == b"Q":
            return self._query_commits(body)
        return False

    def _query_commits(self, text: bytes) -> bool:
        command = text.lstrip()[:8].upper()
        was_in_transaction = self._in_transaction
        if command.startswith(b"BEGIN"):
            self._in_transaction = True
        elif command.startswith((b"COMMIT", b"ROLLBACK")) and b" TO " not in text.upper():
            self._in_transaction = False
        return command.startswith(b"COMMIT") or (not was_in_transaction and bool(_WRITES.search(text)))


class _AppLink(Link):
    connection_type = _Session


class Network:
    """Its ports are known, and kept, from the start."""

    def __init__(self) -> None:
        self.app: dict[str, Link] = {name: _AppLink() for name in NAMES}
        """Holdfast's way to each node."""
        self.replication: dict[str, Link] = {name: Link() for name in NAMES}
        """The other node's way to each node."""

    @property
    def links(self) -> list[Link]:
        return [*self.app.values(), *self.replication.values()]

    @property
    def replication_ports(self) -> dict[str, int]:
        return {name: link.port for name, link in self.replication.items()}

    @asynccontextmanager
    async def running(self, sockets: Mapping[str, Path]) -> AsyncIterator[Network]:
        """``sockets``: the path of each node's, which need not exist yet."""
        async with AsyncExitStack() as stack:
            for links in (self.app, self.replication):
                for name, link in links.items():
                    link.use_server(sockets[name])
                    await stack.enter_async_context(link.running())
            yield self
