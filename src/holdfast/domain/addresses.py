"""The addresses that a delivery must never go to, each with its reason. Pure.

``ipaddress.is_global`` is no filter: it lets through multicast, 6to4, NAT64 and what clouds use for their
own ends, and it changes with the release of Python. So the table stands here in full.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

IPAddress = IPv4Address | IPv6Address
IPNetwork = IPv4Network | IPv6Network

_LOOPBACK = "a loopback address"
_METADATA = "the address of a cloud's metadata service"
_DOCUMENTATION = "an address for documentation"
_PROTOCOLS = "an address reserved for protocols"
_NAT64 = "a NAT64 address"
_MAPPED = "an IPv4-mapped address"

# The first row that contains the address speaks, so the narrower ranges stand before the wider.
BLOCKED_RANGES: tuple[tuple[str, str], ...] = (
    ("0.0.0.0/32", "the unspecified address"),
    ("0.0.0.0/8", "an address of this network"),
    ("10.0.0.0/8", "a private address"),
    ("100.100.100.200/32", _METADATA),
    ("100.64.0.0/10", "a shared address (CGNAT)"),
    ("127.0.0.0/8", _LOOPBACK),
    ("168.63.129.16/32", _METADATA),
    ("169.254.169.254/32", _METADATA),
    ("169.254.170.2/32", _METADATA),
    ("169.254.0.0/16", "a link-local address"),
    ("172.16.0.0/12", "a private address"),
    ("192.0.0.192/32", _METADATA),
    ("192.0.0.0/24", _PROTOCOLS),
    ("192.0.2.0/24", _DOCUMENTATION),
    ("192.31.196.0/24", _PROTOCOLS),
    ("192.52.193.0/24", _PROTOCOLS),
    ("192.88.99.0/24", "a 6to4 relay address"),
    ("192.168.0.0/16", "a private address"),
    ("192.175.48.0/24", _PROTOCOLS),
    ("198.18.0.0/15", "an address for benchmarking"),
    ("198.51.100.0/24", _DOCUMENTATION),
    ("203.0.113.0/24", _DOCUMENTATION),
    ("224.0.0.0/4", "a multicast address"),
    ("255.255.255.255/32", "the broadcast address"),
    ("240.0.0.0/4", "a reserved address"),
    ("::/128", "the unspecified address"),
    ("::1/128", _LOOPBACK),
    ("::ffff:0:0/96", _MAPPED),
    ("::/96", "an IPv4-compatible address"),
    ("::ffff:0:0:0/96", "an IPv4-translated address"),
    ("64:ff9b::/96", _NAT64),
    ("64:ff9b:1::/48", _NAT64),
    ("100::/64", "a discard-only address"),
    ("100:0:0:1::/64", _PROTOCOLS),
    ("2001::/32", "a Teredo address"),
    ("2001:2::/48", "an address for benchmarking"),
    ("2001:10::/28", "an ORCHID address"),
    ("2001:20::/28", "an ORCHID address"),
    ("2001::/23", _PROTOCOLS),
    ("2001:db8::/32", _DOCUMENTATION),
    ("2002::/16", "a 6to4 address"),
    ("2620:4f:8000::/48", _PROTOCOLS),
    ("3fff::/20", _DOCUMENTATION),
    ("5f00::/16", "a segment routing address"),
    ("fd00:ec2::254/128", _METADATA),
    ("fd20:ce::254/128", _METADATA),
    ("fc00::/7", "a private address"),
    ("fe80::/10", "a link-local address"),
    ("fec0::/10", "a site-local address"),
    ("ff00::/8", "a multicast address"),
    # Only 2000::/3 is given out for the public internet.
    ("::/3", "a reserved address"),
    ("4000::/2", "a reserved address"),
    ("8000::/1", "a reserved address"),
)

_TABLE = tuple((ip_network(text), words) for text, words in BLOCKED_RANGES)


def is_allowed(address: IPAddress, allowed: Sequence[IPNetwork]) -> bool:
    """Tell whether a network that the operator opened contains the address or the IPv4 mapped in it."""
    judged = unmapped(address)
    return any(judged in network for network in allowed)


def blocked_kind(address: IPAddress, allowed: Sequence[IPNetwork]) -> str | None:
    """Return what the address is, such as "a private address", if nothing may be sent there."""
    if is_allowed(address, allowed):
        return None
    if getattr(address, "scope_id", None):
        # 2001:db8::1%eth0 names an interface of this machine, whatever its digits say.
        return "an address with a zone"
    return _kind(unmapped(address)) or _kind(address)


def is_loopback(address: IPAddress) -> bool:
    return _kind(unmapped(address)) == _LOOPBACK


def _kind(address: IPAddress) -> str | None:
    return next((words for network, words in _TABLE if address in network), None)


def unmapped(address: IPAddress) -> IPAddress:
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


# How clients are counted. A subscriber of IPv6 has a /64 at least, often a /56, and sometimes a /48.

_COUNTED_BITS = ((64, 1), (56, 2), (48, 4))


def counted_networks(address: IPAddress) -> tuple[tuple[str, int], ...]:
    """Return the networks by which a client is limited, each with how many times the limit it may have."""
    if isinstance(address, IPv4Address):
        return ((str(address), 1),)
    return tuple((_network(address, bits), times) for bits, times in _COUNTED_BITS)


def shared_network(address: IPAddress) -> str:
    """Return the network whose share of a project, and whose failed sign-ins to an account, are limited."""
    return _network(address, 24 if isinstance(address, IPv4Address) else 48)


def _network(address: IPAddress, bits: int) -> str:
    return str(ip_network((address, bits), strict=False))
