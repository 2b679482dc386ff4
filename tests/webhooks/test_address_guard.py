"""Where deliveries may go: what a name resolves to, and what a URL says."""

import socket
from collections.abc import AsyncIterator
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest

from holdfast.domain.endpoint_url import parse_endpoint_url
from holdfast.webhooks import address_guard
from holdfast.webhooks.address_guard import AddressNotAllowed, find_url_error
from holdfast.webhooks.causes import NOT_ALLOWED
from holdfast.webhooks.resolver import Resolver
from tests.support.name_server import NameServer, name_server
from tests.support.receiver_posts import LOOPBACK, guard_for

STRICT = guard_for([])
OPEN = guard_for()


def addresses(*texts: str) -> tuple[IPv4Address | IPv6Address, ...]:
    return tuple(map(ip_address, texts))


def test_a_single_blocked_address_blocks_them_all() -> None:
    url = parse_endpoint_url("https://shop.example/")
    public = addresses("93.184.216.34", "2606:4700::1111")
    assert STRICT.check(url, public) == public
    with pytest.raises(AddressNotAllowed, match=NOT_ALLOWED):
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
    with pytest.raises(AddressNotAllowed, match=NOT_ALLOWED):
        guard_for(["10.0.0.0/8"]).check(url, addresses("::1", "127.0.0.1"))
    for found in (addresses("127.0.0.1", "::1", other), addresses(other, "::1")):
        with pytest.raises(AddressNotAllowed, match=NOT_ALLOWED):
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
    ("url", "fault"),
    [
        ("https://public.example/", None),
        ("https://93.184.216.34/", None),
        ("https://not-there-yet.example/", None),
        ("https://private.example/", NOT_ALLOWED),
        ("https://mixed.example/", NOT_ALLOWED),
        ("https://nowhere.internal/", "The host name does not exist."),
        ("https://intranet/", "The host name does not exist."),
        ("https://user@public.example/", "The URL must not have a user name or password."),
    ],
)
async def test_a_url_is_checked_when_it_is_saved(url: str, fault: str | None, resolver: Resolver) -> None:
    found = await find_url_error(url, STRICT, resolver)
    assert (found and str(found)) == fault


async def test_localhost_is_loopback_of_which_one_family_has_to_be_allowed(resolver: Resolver) -> None:
    for host in ("localhost", "LOCALHOST.", "api.localhost"):
        fault = await find_url_error(f"https://{host}/", STRICT, resolver)
        assert fault == NOT_ALLOWED
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
