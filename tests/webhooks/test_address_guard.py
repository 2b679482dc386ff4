"""Where deliveries may go: the addresses and URLs of endpoints, in every spelling that leads somewhere."""

import socket
from collections.abc import AsyncIterator
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.addresses import blocked_kind
from holdfast.domain.endpoint_url import EndpointUrl, InvalidEndpointUrl, parse_endpoint_url
from holdfast.webhooks import address_guard
from holdfast.webhooks.address_guard import AddressNotAllowed, find_url_error
from holdfast.webhooks.resolver import Resolver
from tests.support.name_server import NameServer, name_server
from tests.support.receiver_posts import LOOPBACK, guard_for

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

STRICT = guard_for([])
OPEN = guard_for()
NOT_HTTPS = "The URL must begin with https://."
NO_USER = "The URL must not have a user name or password."
STRANGE = "The URL must not have spaces, backslashes or invisible characters."
ARABIC_HOST = "xn--mgbh0fb.xn--mgberp4a5d4ar"
LEAVE_AS_IS = "/a//b/../c;d=e,f?g=[h]&i=%20@:!$'()*+~"


def addresses(*texts: str) -> tuple[IPv4Address | IPv6Address, ...]:
    return tuple(map(ip_address, texts))


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


def test_a_single_blocked_address_blocks_them_all() -> None:
    url = parse_endpoint_url("https://shop.example/")
    public = addresses("93.184.216.34", "2606:4700::1111")
    assert STRICT.check(url, public) == public
    expected = r"The name resolves to 10\.0\.0\.1, which is a private address\."
    with pytest.raises(AddressNotAllowed, match=expected):
        STRICT.check(url, addresses("93.184.216.34", "10.0.0.1"))


@pytest.mark.parametrize(
    ("allowed", "found", "use"),
    [
        ("127.0.0.0/8", "::1 127.0.0.1", "127.0.0.1"),
        ("::1/128", "::1 127.0.0.1", "::1"),
        ("127.0.0.0/8 ::1/128", "::1 127.0.0.1", "::1 127.0.0.1"),
        ("127.0.0.1/32", "::ffff:127.0.0.2 ::ffff:127.0.0.1", "::ffff:127.0.0.1"),
    ],
)
def test_of_loopback_addresses_the_allowed_ones_are_contacted(allowed: str, found: str, use: str) -> None:
    for scheme in ("http", "https"):
        url = parse_endpoint_url(f"{scheme}://localhost/")
        checked = guard_for(allowed.split()).check(url, addresses(*found.split()))
        assert checked == addresses(*use.split())


@pytest.mark.parametrize("other", ["93.184.216.34", "10.0.0.1", "10.1.0.1", "::", "0.0.0.0"])
def test_a_loopback_address_is_blocked_if_none_is_allowed_or_beside_any_other(other: str) -> None:
    url = parse_endpoint_url("https://shop.example/")
    with pytest.raises(AddressNotAllowed, match=r"resolves to ::1, which is a loopback address\."):
        guard_for(["10.0.0.0/8"]).check(url, addresses("::1", "127.0.0.1"))
    for found in (addresses("127.0.0.1", "::1", other), addresses(other, "::1")):
        with pytest.raises(AddressNotAllowed, match="The name resolves to"):
            guard_for(["127.0.0.0/8", "10.1.0.0/16"]).check(url, found)


def test_http_needs_every_address_in_an_allowed_network() -> None:
    guard, url = guard_for(["10.0.0.0/8"]), parse_endpoint_url("http://shop.example/")
    guard.check(url, addresses("10.0.0.1", "10.0.0.2"))
    with pytest.raises(AddressNotAllowed, match="http is for addresses in the allowed networks only"):
        guard.check(url, addresses("10.0.0.1", "93.184.216.34"))


def test_a_socket_that_leads_elsewhere_is_refused() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as connected,
    ):
        STRICT.check_peer(connected, ip_address("127.0.0.1"))
        STRICT.check_peer(connected, ip_address("::ffff:127.0.0.1"))
        with pytest.raises(AddressNotAllowed, match="another address than the one that was checked"):
            STRICT.check_peer(connected, ip_address("127.0.0.2"))


REFUSED = {
    NOT_HTTPS: """
        ftp://shop.example/ //shop.example/ https:shop.example javascript://shop.example/%0a
    """,
    "The URL has no host.": "https:// https:///path https://:443/",
    NO_USER: "https://user@shop.example/ https://user:secret@shop.example/ https://@shop.example/",
    "The URL must not have a fragment (#…).": "https://shop.example/#part https://shop.example/#",
    "The URL's port must be a number from 1 to 65535.": """
        https://shop.example:0/ https://shop.example:65536/ https://shop.example:/ https://shop.example:٤٤٣/
        https://shop.example:1:2/
    """,
    "The URL's host is not a host name or an IP address.": f"""
        https://a..b/ https://shop.example../ https://.example/ https://-shop.example/ https://[::1/
        https://[::1]x/ https://sh%6fp.example/ https://{"a" * 64}.example/ https://{"a." * 127}example/
        https://{"ü" * 64}.example/
    """,
    "The URL's host is not a valid IPv6 address.": "https://[v1.x]/ https://[1.2.3.4]/",
    "The URL's host must not have a zone (%…).": "https://[fe80::1%25eth0]/",
    "The URL's host is not a valid IPv4 address.": """
        https://%31%30.0.0.1/ https://256.0.0.1/ https://1.2.3.4.5/ https://8.8.8.8.0/ https://127.0.0.1.0/
        https://127.0.0.1.0x0./ https://0.0.0.0.0.0/ https://1.2.3.08/ https://4294967296/ https://shop.1/
    """,
    "The URL's host has characters of more than one reading: write it in its xn-- form.": """
        https://straße.example/
    """,
    "The URL must have at most 2000 characters.": "https://shop.example/" + "a" * 1980,
}
STRANGE_URLS = [
    *(" https://shop.example/", "https://shop.example\t/", "https://shop.example\\@10.0.0.1/"),
    *(f"https://shop.example/{text}" for text in ("a b", "\n", "\x7f", "\u202egpj.exe", "\ud800")),
]


@pytest.mark.parametrize(
    ("fault", "urls"),
    [*((fault, urls.split()) for fault, urls in REFUSED.items()), (NOT_HTTPS, [""]), (STRANGE, STRANGE_URLS)],
)
def test_a_url_that_cannot_be_an_endpoint_is_refused_with_the_reason(fault: str, urls: list[str]) -> None:
    for url in urls:
        with pytest.raises(InvalidEndpointUrl) as refused:
            parse_endpoint_url(url)
        assert (url, str(refused.value)) == (url, fault)


@pytest.fixture
async def names() -> AsyncIterator[NameServer]:
    public, private = "93.184.216.34", "10.0.0.1"
    async with name_server(public=[public], private=[private], mixed=[public, "::1"]) as server:
        yield server


@pytest.fixture
async def resolver(names: NameServer) -> AsyncIterator[Resolver]:
    resolver = Resolver([names.place])
    yield resolver
    await resolver.close()


@pytest.mark.parametrize(
    ("address", "hosts"),
    [
        ("127.0.0.1", "127.0.0.1 127.0.0.1. 2130706433 0x7f.1 0X7F000001 017700000001 127.1 127.0.1"),
        ("127.0.0.1", "0177.0.0.01 1２7.0.0.1 127。0。0。1"),
        ("0.0.0.0", "0 0x"),
        ("169.254.169.254", "169.254.43518"),
        ("::1", "[::1] [0:0:0:0:0:0:0:1]"),
        ("::ffff:a00:1", "[::ffff:10.0.0.1] [::FFFF:0A00:0001]"),
        ("64:ff9b::a00:1", "[64:ff9b::10.0.0.1]"),
    ],
)
async def test_an_address_is_refused_in_every_spelling(address: str, hosts: str, resolver: Resolver) -> None:
    for host in hosts.split():
        assert str(parse_endpoint_url(f"https://{host}/").address) == address
        fault = await find_url_error(f"https://{host}/", STRICT, resolver)
        assert str(fault).startswith(f"The URL's host is {address}, which is ")


@pytest.mark.parametrize(
    ("url", "parsed"),
    [
        ("https://shop.example", ("https", "shop.example", 443, "/")),
        ("HTTPS://Shop.Example.:0443/A?b", ("https", "shop.example", 443, "/A?b")),
        ("https://shop.example?q=1", ("https", "shop.example", 443, "/?q=1")),
        ("http://my_shop.example:8080/x", ("http", "my_shop.example", 8080, "/x")),
        ("https://مثال.السعودية/أ?ب=%D8", ("https", ARABIC_HOST, 443, "/%D8%A3?%D8%A8=%D8")),
        ('https://shop.example/{"a"}|<^`>', ("https", "shop.example", 443, "/%7B%22a%22%7D%7C%3C%5E%60%3E")),
        (f"https://shop.example{LEAVE_AS_IS}", ("https", "shop.example", 443, LEAVE_AS_IS)),
    ],
)
def test_a_url_is_parsed_to_what_is_contacted(url: str, parsed: tuple[str, str, int, str]) -> None:
    assert parse_endpoint_url(url)[:4] == parsed


@pytest.mark.parametrize("host", ["shop.example", "shop.example:80", "[2606:4700::1111]:8443"])
def test_the_host_header_names_the_port_only_where_it_must(host: str) -> None:
    assert parse_endpoint_url(f"https://{host}/").host_header == host
    assert parse_endpoint_url("http://shop.example:80/").host_header == "shop.example"


@given(st.text(max_size=60).map("https://{}".format) | st.from_regex(r"https?://[!-~]{0,40}", fullmatch=True))
@example("https://[")
@example("https://0x.0x.0x.0x/")
def test_any_text_is_either_refused_or_parsed_to_something_that_fits_a_request_line(text: str) -> None:
    try:
        url = parse_endpoint_url(text)
    except InvalidEndpointUrl:
        return
    assert isinstance(url, EndpointUrl)
    written = f"{url.request_target} {url.host_header}"
    assert all(33 <= ord(letter) < 127 for letter in written.replace(" ", "", 1))
    assert parse_endpoint_url(f"{url.scheme}://{url.host_header}{url.request_target}") == url


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("https://public.example/", None),
        ("https://93.184.216.34/", None),
        ("https://not-there-yet.example/", None),
        ("https://private.example/", "The name resolves to 10.0.0.1, which is a private address."),
        ("https://mixed.example/", "The name resolves to ::1, which is a loopback address."),
        ("https://nowhere.internal/", "The host name does not exist."),
        ("https://intranet/", "The host name does not exist."),
        ("https://user@public.example/", NO_USER),
    ],
)
async def test_a_url_is_checked_when_it_is_saved(url: str, fault: str | None, resolver: Resolver) -> None:
    found = await find_url_error(url, STRICT, resolver)
    assert (found and str(found)) == fault


async def test_localhost_is_loopback_of_which_one_family_has_to_be_allowed(resolver: Resolver) -> None:
    for host in ("localhost", "LOCALHOST.", "api.localhost"):
        fault = await find_url_error(f"https://{host}/", STRICT, resolver)
        assert str(fault).endswith(", which is a loopback address.")
        assert await find_url_error(f"http://{host}:8000/", OPEN, resolver) is None
    for network in LOOPBACK:
        assert await find_url_error("http://localhost:8000/", guard_for([network]), resolver) is None


async def test_http_is_refused_on_save_outside_the_allowed_networks(resolver: Resolver) -> None:
    expected = "The URL must begin with https://: http is for addresses in the allowed networks only."
    for host in ("public.example", "93.184.216.34", "not-there-yet.example"):
        assert await find_url_error(f"http://{host}/", OPEN, resolver) == expected


async def test_a_name_server_that_fails_or_hangs_keeps_only_private_names_from_being_saved(
    names: NameServer, resolver: Resolver, monkeypatch: pytest.MonkeyPatch
) -> None:
    names.failing.add("broken.example")
    assert await find_url_error("https://broken.example/", STRICT, resolver) is None
    monkeypatch.setattr(address_guard, "_LONGEST_LOOKUP_SECONDS", 0.05)
    names.hanging |= {"hung.example", "hung.internal"}
    assert await find_url_error("https://hung.example/", STRICT, resolver) is None
    fault = await find_url_error("https://hung.internal/", STRICT, resolver)
    assert fault == "The host name could not be resolved."
