"""Names to addresses, without threads that a hanging name server could use up."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

import aiodns
import pycares
from aiodns.error import ARES_ENODATA, ARES_ENOTFOUND, DNSError

from holdfast.domain.addresses import IPAddress
from holdfast.domain.message import MessageError
from holdfast.webhooks import causes

# Asked three times (after 1, 2 and 4 s): a lost packet costs a second, and ten seconds are not used up.
_FIRST_WAIT_SECONDS = 1.0
_TRIES = 3
_CAUSES = {ARES_ENOTFOUND: causes.NAME_UNKNOWN, ARES_ENODATA: causes.NAME_WITHOUT_ADDRESS}


class NameUnresolved(MessageError):
    """The message is the cause."""


class Resolver:
    """Asks the system's name servers, or those given as ``HOST:PORT``. Answers are kept for their TTL."""

    def __init__(self, name_servers: Sequence[str] = ()) -> None:
        self._name_servers = tuple(name_servers)
        self._asked: dict[str, asyncio.Future[pycares.AddrInfoResult]] = {}
        self._ares: aiodns.DNSResolver | None = None

    async def addresses_of(self, host: str) -> tuple[IPAddress, ...]:
        """At least one; raises ``NameUnresolved``."""
        try:
            # Whoever gives up waiting must not take the question from others who wait for the same name.
            found = await asyncio.shield(self._asked.get(host) or self._ask(host))
        except DNSError as error:
            raise NameUnresolved(_CAUSES.get(error.args[0], causes.NAME_UNRESOLVED)) from None
        addresses = _distinct(found.nodes)
        if not addresses:
            raise NameUnresolved(causes.NAME_WITHOUT_ADDRESS)
        return addresses

    def _ask(self, host: str) -> asyncio.Future[pycares.AddrInfoResult]:
        answer = self._channel().getaddrinfo(host)
        self._asked[host] = answer
        answer.add_done_callback(lambda done: self._answered(host, done))
        return answer

    def _answered(self, host: str, answer: asyncio.Future[pycares.AddrInfoResult]) -> None:
        del self._asked[host]
        if not answer.cancelled():
            answer.exception()  # Nobody may be left to see it, which is no reason to complain.

    def _channel(self) -> aiodns.DNSResolver:
        if self._ares is None:
            # At the first question, because it belongs to the loop that is running then.
            self._ares = aiodns.DNSResolver(timeout=_FIRST_WAIT_SECONDS, tries=_TRIES)
            if self._name_servers:
                self._ares.nameservers = self._name_servers
        return self._ares

    async def close(self) -> None:
        if self._ares is None:
            return
        ares, self._ares = self._ares, None
        ares.cancel()
        # Its thread calls back into the loop, which must not be closed by then.
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
        await ares.close()


def _distinct(nodes: Iterable[pycares.AddrInfoNode]) -> tuple[IPAddress, ...]:
    return tuple(dict.fromkeys(ip_address(node.addr[0].decode()) for node in nodes))
