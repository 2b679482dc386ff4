"""Which addresses deliveries may go to."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.addresses import blocked_kind

# From the registries of IANA for special purposes and of the clouds for their metadata, not from the code.
RANGES = {
    "a private address": "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7",
    "a loopback address": "127.0.0.0/8 ::1/128",
    "a link-local address": "169.254.0.0/16 fe80::/10",
    "a shared address (CGNAT)": "100.64.0.0/10",
    "a multicast address": "224.0.0.0/4 ff00::/8",
    "the broadcast address": "255.255.255.255/32",
    "the unspecified address": "0.0.0.0/32 ::/128",
    "an address of this network": "0.0.0.1/32 0.255.255.255/32",
    "an address for documentation": "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20",
    "an address for benchmarking": "198.18.0.0/15 2001:2::/48",
    "an address reserved for protocols": """
        192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.175.48.0/24 100:0:0:1::/64 2001:1::/32 2001:3::/32
        2001:4:112::/48 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff/128 2620:4f:8000::/48
    """,
    "a 6to4 relay address": "192.88.99.0/24",
    "a reserved address": "240.0.0.0/32 255.255.255.254/32 1000::/4 4000::/3 6000::/3 8000::/3 e000::/4",
    "an IPv4-compatible address": "::2/128 ::ffff:ffff/128 ::8.8.8.8/128",
    "an IPv4-mapped address": "::ffff:8.8.8.8/128",
    "an IPv4-translated address": "::ffff:0:0:0/96",
    "a NAT64 address": "64:ff9b::/96 64:ff9b:1::/48",
    "a discard-only address": "100::/64",
    "a Teredo address": "2001::/32",
    "an ORCHID address": "2001:10::/28 2001:20::/28",
    "a 6to4 address": "2002::/16",
    "a segment routing address": "5f00::/16",
    "a site-local address": "fec0::/10",
    "the address of a cloud's metadata service": """
        169.254.169.254/32 169.254.170.2/32 100.100.100.200/32 192.0.0.192/32 168.63.129.16/32
        fd00:ec2::254/128 fd20:ce::254/128
    """,
}
EDGES = [
    (str(edge), kind)
    for kind, networks in RANGES.items()
    for network in map(ip_network, networks.split())
    for edge in dict.fromkeys((network[0], network[-1]))
]
# Public addresses next to those.
NEIGHBOURS = """
    1.0.0.0 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 168.63.129.15
    168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0 192.0.1.255
    192.0.3.0 192.31.195.255 192.31.197.0 192.52.192.255 192.52.194.0 192.88.98.255 192.88.100.0
    192.167.255.255 192.169.0.0 192.175.47.255 192.175.49.0 198.17.255.255 198.20.0.0 198.51.99.255
    198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 2000:: 2001:200:: 2001:db7:ffff:: 2001:db9::
    2003:: 2606:4700:4700::1111 2620:4f:7fff:: 2620:4f:8001:: 3ffe:ffff:: 3fff:1000::
"""


@pytest.mark.parametrize(("address", "kind"), EDGES)
def test_both_edges_of_every_special_range_are_blocked_by_name(address: str, kind: str) -> None:
    assert blocked_kind(ip_address(address), ()) == kind


def test_the_public_addresses_next_to_special_ranges_are_not_blocked() -> None:
    assert [address for address in NEIGHBOURS.split() if blocked_kind(ip_address(address), ())] == []


@given(st.integers(0, 2**32 - 1).map(IPv4Address) | st.integers(0, 2**128 - 1).map(IPv6Address))
def test_what_the_standard_library_calls_not_global_is_blocked(address: IPv4Address | IPv6Address) -> None:
    anycast_of_the_ietf = ip_network("192.0.0.0/24") if address.version == 4 else ip_network("2001::/23")
    if not address.is_global or address.is_multicast or address in anycast_of_the_ietf:
        assert blocked_kind(address, ()) is not None


@given(st.integers(0, 2**32 - 1))
def test_an_ipv4_address_within_ipv6_is_always_blocked(number: int) -> None:
    for prefix in ("::ffff:0:0", "::", "::ffff:0:0:0", "64:ff9b::"):
        assert blocked_kind(IPv6Address(int(IPv6Address(prefix)) + number), ()) is not None
    assert blocked_kind(IPv6Address((0x2002 << 112) + (number << 80)), ()) == "a 6to4 address"


@pytest.mark.parametrize(
    ("address", "allowed", "kind"),
    [
        ("::ffff:10.0.0.1", "", "a private address"),
        ("::ffff:169.254.169.254", "", "the address of a cloud's metadata service"),
        ("2606:4700::1111%eth0", "", "an address with a zone"),
        ("10.1.255.255", "10.1.0.0/16", None),
        ("10.2.0.0", "10.1.0.0/16", "a private address"),
        ("fd00:1::1", "10.1.0.0/16 fd00:1::/32", None),
        ("fd00:2::1", "10.1.0.0/16 fd00:1::/32", "a private address"),
        ("::ffff:10.1.2.3", "10.1.0.0/16", None),
        # A network of IPv6 that happens to contain the mapped range opens no IPv4.
        ("::ffff:10.1.2.3", "::/0", "a private address"),
    ],
)
def test_an_allowed_network_is_open_and_a_mapped_address_counts_as_its_ipv4(
    address: str, allowed: str, kind: str | None
) -> None:
    assert blocked_kind(ip_address(address), list(map(ip_network, allowed.split()))) == kind
