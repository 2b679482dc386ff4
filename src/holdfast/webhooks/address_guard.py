"""Checks that deliveries go only to addresses that they may go to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from ipaddress import ip_address

from holdfast.domain.addresses import IPAddress, IPNetwork, blocked_kind, is_allowed, is_loopback, unmapped
from holdfast.domain.endpoint_url import EndpointUrl, InvalidEndpointUrl, is_public_name, parse_endpoint_url
from holdfast.domain.errors import AnyMessage, MessageError
from holdfast.webhooks import causes
from holdfast.webhooks.resolver import NameUnresolved, Resolver

# A user waits for the check of a form. Each connect checks again in any case.
_LONGEST_LOOKUP_SECONDS = 3.0


class AddressNotAllowed(MessageError):
    """The message is the cause."""


class AddressGuard:
    def __init__(self, allowed_networks: Sequence[IPNetwork]) -> None:
        self._allowed = tuple(allowed_networks)

    def check(self, url: EndpointUrl, addresses: Sequence[IPAddress]) -> tuple[IPAddress, ...]:
        """Return the addresses to contact. Raise ``AddressNotAllowed`` if a single one is not allowed."""
        allowed = tuple(address for address in addresses if is_allowed(address, self._allowed))
        # The resolver returns both 127.0.0.1 and ::1 for localhost, whichever of them the operator allowed.
        checked = allowed if allowed and all(map(is_loopback, addresses)) else tuple(addresses)
        for address in checked:
            kind = blocked_kind(address, self._allowed)
            if kind is not None:
                is_name = url.address is None
                raise AddressNotAllowed(
                    causes.NOT_ALLOWED if is_name else causes.explain_address(address, kind)
                )
        if not url.is_encrypted and checked != allowed:
            raise AddressNotAllowed(causes.NOT_ENCRYPTED)
        return checked

    def check_peer(self, connected: socket.socket, address: IPAddress) -> None:
        """Compare with the socket's own peer: a rule of the kernel may have led it elsewhere."""
        peer = ip_address(connected.getpeername()[0])
        if unmapped(peer) != unmapped(address):
            raise AddressNotAllowed(causes.OTHER_PEER)


async def find_url_error(url: str, guard: AddressGuard, resolver: Resolver) -> AnyMessage | None:
    """Return what is wrong with the URL of an endpoint that is to be saved, or None.

    A public name that does not resolve yet is accepted: every connect checks its addresses.
    """
    try:
        target = parse_endpoint_url(url)
        async with asyncio.timeout(_LONGEST_LOOKUP_SECONDS):
            guard.check(target, [target.address] if target.address else await resolver.resolve(target.host))
    except (InvalidEndpointUrl, AddressNotAllowed) as error:
        return error.message
    except (NameUnresolved, TimeoutError) as error:
        if not is_public_name(target.host):
            return error.message if isinstance(error, NameUnresolved) else causes.NAME_UNRESOLVED
        return None if target.is_encrypted else causes.NOT_ENCRYPTED
    return None
