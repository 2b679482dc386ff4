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

BLOCKED_RANGES = {
    "the unspecified address": "0.0.0.0/32 ::/128",
    "an address of this network": "0.0.0.0/8",
    "a private address": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    "the address of a cloud's metadata service": (
        "100.100.100.200/32 168.63.129.16/32 169.254.169.254/32 169.254.170.2/32 192.0.0.192/32 "
        "fd00:ec2::254/128 fd20:ce::254/128"
    ),
    "a shared address (CGNAT)": "100.64.0.0/10",
    _LOOPBACK: "127.0.0.0/8 ::1/128",
    "a link-local address": "169.254.0.0/16 fe80::/10",
    "an address reserved for protocols": (
        "192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 100:0:0:1::/64 2001::/23 "
        "2620:4f:8000::/48"
    ),
    "an address for documentation": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
    "a 6to4 relay address": "192.88.99.0/24",
    "an address for benchmarking": "198.18.0.0/15 2001:2::/48",
    "a multicast address": "224.0.0.0/4 ff00::/8",
    "the broadcast address": "255.255.255.255/32",
    "a reserved address": "240.0.0.0/4 ::/3 4000::/2 8000::/1",
    "an IPv4-mapped address": "::ffff:0:0/96",
    "an IPv4-compatible address": "::/96",
    "an IPv4-translated address": "::ffff:0:0:0/96",
    "a NAT64 address": "64:ff9b::/96 64:ff9b:1::/48",
    "a discard-only address": "100::/64",
    "a Teredo address": "2001::/32",
    "an ORCHID address": "2001:10::/28 2001:20::/28",
    "a 6to4 address": "2002::/16",
    "a segment routing address": "5f00::/16",
    "a site-local address": "fec0::/10",
}
"""By what they are. Only 2000::/3 is given out for the public internet."""

# The narrowest range that contains an address says what it is.
_TABLE = sorted(
    ((ip_network(text), kind) for kind, ranges in BLOCKED_RANGES.items() for text in ranges.split()),
    key=lambda row: -row[0].prefixlen,
)


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
