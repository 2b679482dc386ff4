"""The guard between deliveries and the networks that are nobody's business."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from typing import Protocol

from holdfast.domain.addresses import IPAddress, IPNetwork, is_allowed, is_loopback, refusal
from holdfast.domain.endpoint_url import EndpointUrl, InvalidEndpointUrl, is_public_name, parse_endpoint_url
from holdfast.domain.message import AnyMessage, MessageError
from holdfast.webhooks import causes
from holdfast.webhooks.resolver import NameUnresolved

# Somebody waits at a form; each connect checks again in any case.
_LONGEST_LOOKUP_SECONDS = 3.0


class AddressNotAllowed(MessageError):
    """The message is the cause."""


class NameLookup(Protocol):
    async def addresses_of(self, host: str) -> tuple[IPAddress, ...]: ...


class AddressGuard:
    def __init__(self, allowed_networks: Sequence[IPNetwork]) -> None:
        self._allowed = tuple(allowed_networks)

    def check(self, url: EndpointUrl, addresses: Sequence[IPAddress]) -> tuple[IPAddress, ...]:
        """Those to contact. Raises ``AddressRefused`` if a single one of them must not be."""
        wanted = self._allowed_if_all_loopback(addresses) or tuple(addresses)
        for address in wanted:
            words = refusal(address, self._allowed)
            if words is not None:
                raise AddressNotAllowed(causes.of_address(address, words, is_literal=url.address is not None))
        if not url.is_encrypted and not all(is_allowed(address, self._allowed) for address in wanted):
            raise AddressNotAllowed(causes.NOT_ENCRYPTED)
        return wanted

    def check_peer(self, connected: socket.socket, address: IPAddress) -> None:
        """What the socket itself says is the last word: a rule of the kernel may have led it elsewhere."""
        peer = ip_address(connected.getpeername()[0])
        if _plain(peer) != _plain(address):
            raise AddressNotAllowed(causes.OTHER_PEER)

    def _allowed_if_all_loopback(self, addresses: Sequence[IPAddress]) -> tuple[IPAddress, ...]:
        """The resolver has both 127.0.0.1 and ::1 for localhost, whichever of them the operator allowed."""
        if not all(map(is_loopback, addresses)):
            return ()
        return tuple(address for address in addresses if is_allowed(address, self._allowed))


async def find_url_error(url: str, guard: AddressGuard, resolver: NameLookup) -> AnyMessage | None:
    """What is wrong with the URL of an endpoint that is to be saved: one sentence, or None.

    A public name that does not resolve yet is fine: it is checked again on the socket of every connect.
    """
    try:
        target = parse_endpoint_url(url)
        guard.check(target, await _addresses(target, resolver))
    except (InvalidEndpointUrl, AddressNotAllowed) as fault:
        return fault.message
    except (NameUnresolved, TimeoutError) as error:
        return _unresolved_fault(target, error)
    return None


async def _addresses(target: EndpointUrl, resolver: NameLookup) -> tuple[IPAddress, ...]:
    if target.address is not None:
        return (target.address,)
    async with asyncio.timeout(_LONGEST_LOOKUP_SECONDS):
        return await resolver.addresses_of(target.host)


def _unresolved_fault(target: EndpointUrl, error: NameUnresolved | TimeoutError) -> AnyMessage | None:
    if not is_public_name(target.host):
        return error.message if isinstance(error, NameUnresolved) else causes.NAME_UNRESOLVED
    return None if target.is_encrypted else causes.NOT_ENCRYPTED


def _plain(address: IPAddress) -> IPAddress:
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
