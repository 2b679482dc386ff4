"""Resolves names without threads, which a name server that hangs could use up."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from ipaddress import ip_address

import aiodns
import pycares
from aiodns.error import ARES_ENODATA, ARES_ENOTFOUND, DNSError

from holdfast.domain.addresses import IPAddress
from holdfast.domain.errors import MessageError
from holdfast.webhooks import causes

# Three tries, with 1, 2 and 4 s: a lost packet costs a second, and the attempt has time left after them.
_FIRST_TIMEOUT_SECONDS = 1.0
_TRIES = 3
_CAUSES = {ARES_ENOTFOUND: causes.NAME_UNKNOWN, ARES_ENODATA: causes.NAME_WITHOUT_ADDRESS}


class NameUnresolved(MessageError):
    """The message is the cause."""


class Resolver:
    """Queries the system's name servers, or those given as ``HOST:PORT``. Answers are cached by TTL."""

    def __init__(self, name_servers: Sequence[str] = ()) -> None:
        self._name_servers = tuple(name_servers)
        self._queries: dict[str, asyncio.Future[pycares.AddrInfoResult]] = {}
        self._ares: aiodns.DNSResolver | None = None

    async def resolve(self, host: str) -> tuple[IPAddress, ...]:
        try:
            # A caller that is cancelled must not cancel the query for others who wait for the same name.
            answer = await asyncio.shield(self._queries.get(host) or self._query(host))
        except DNSError as error:
            raise NameUnresolved(_CAUSES.get(error.args[0], causes.NAME_UNRESOLVED)) from None
        addresses = tuple(dict.fromkeys(ip_address(node.addr[0].decode()) for node in answer.nodes))
        if not addresses:
            raise NameUnresolved(causes.NAME_WITHOUT_ADDRESS)
        return addresses

    def _query(self, host: str) -> asyncio.Future[pycares.AddrInfoResult]:
        if self._ares is None:
            # Not earlier: it belongs to the running loop.
            self._ares = aiodns.DNSResolver(timeout=_FIRST_TIMEOUT_SECONDS, tries=_TRIES)
            if self._name_servers:
                self._ares.nameservers = self._name_servers
        query = self._queries[host] = self._ares.getaddrinfo(host)
        query.add_done_callback(lambda done: self._end_query(host, done))
        return query

    def _end_query(self, host: str, query: asyncio.Future[pycares.AddrInfoResult]) -> None:
        del self._queries[host]
        if not query.cancelled():
            query.exception()  # Retrieved, or the loop would log it if all callers have gone.

    async def close(self) -> None:
        if self._ares is None:
            return
        ares, self._ares = self._ares, None
        ares.cancel()
        # Its thread calls back into the loop, which must not be closed by then.
        await asyncio.gather(*self._queries.values(), return_exceptions=True)
        await ares.close()
