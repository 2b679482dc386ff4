"""Where a request comes from, with and without proxies. The peer of these tests is 127.0.0.1."""

from collections.abc import Sequence

import httpx
import pytest
from starlette.applications import Starlette

from holdfast.web.json import JsonResponse
from holdfast.web.request import Request
from tests.support.in_process import app_with, at, client_of

PEER = "127.0.0.1"
PROXIES = ("127.0.0.0/8", "10.0.0.0/8", "2001:db8:ffff::/48")


async def _tell(request: Request) -> JsonResponse:
    client = request.client_address
    return JsonResponse([str(client.address), client.counted_as])


def telling_addresses(*trusted: str) -> Starlette:
    return app_with(at("/told", _tell), trusted_proxies=",".join(trusted))


async def addresses_of(trusted: Sequence[str], *forwarded: Sequence[str]) -> list[str]:
    """What is told to requests with these lines of X-Forwarded-For."""
    async with client_of(telling_addresses(*trusted)) as http:
        return [(await _client(http, lines))[0] for lines in forwarded]


async def _client(http: httpx.AsyncClient, lines: Sequence[str]) -> list[str]:
    headers = [(b"X-Forwarded-For", line.encode("latin-1")) for line in lines]
    address, counted_as = (await http.get("/told", headers=headers)).json()
    return [address, counted_as]


async def test_without_trusted_proxies_it_is_the_peer_whatever_is_forwarded() -> None:
    assert await addresses_of([], [], ["192.0.2.1"]) == [PEER, PEER]


async def test_a_peer_that_is_not_trusted_is_not_believed() -> None:
    assert await addresses_of(["10.0.0.0/8"], ["192.0.2.1"]) == [PEER]


async def test_a_trusted_peer_that_forwards_nothing_is_meant_itself() -> None:
    assert await addresses_of(PROXIES, [], [""], [", ,"]) == [PEER] * 3


@pytest.mark.parametrize(
    ("line", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("198.51.100.9, 192.0.2.1", "192.0.2.1"),
        ("192.0.2.1, 10.0.0.1", "192.0.2.1"),
        ("198.51.100.9,192.0.2.1,10.1.1.1,10.2.2.2", "192.0.2.1"),
        ("192.0.2.1, 2001:db8:ffff::1", "192.0.2.1"),
        ("127.0.0.1, 192.0.2.1", "192.0.2.1"),
        ("192.0.2.1,, ,10.0.0.1,", "192.0.2.1"),
    ],
)
async def test_it_is_the_rightmost_address_that_is_no_proxy(line: str, address: str) -> None:
    assert await addresses_of(PROXIES, [line]) == [address]


async def test_of_proxies_alone_it_is_the_farthest() -> None:
    assert await addresses_of(PROXIES, ["10.0.0.1, 10.0.0.2"]) == ["10.0.0.1"]


async def test_an_empty_line_hides_none_of_the_others() -> None:
    assert await addresses_of(PROXIES, ["192.0.2.1", ""], ["", "192.0.2.1"]) == ["192.0.2.1"] * 2


async def test_several_lines_are_one_list() -> None:
    assert await addresses_of(PROXIES, ["198.51.100.9, 192.0.2.1", "10.0.0.1"]) == ["192.0.2.1"]


@pytest.mark.parametrize(
    "nonsense", ["unknown", "192.0.2", "192.0.2.1.5", "[::1", "é", "192.0.2.1:x", "_hidden"]
)
async def test_nothing_beyond_nonsense_is_believed(nonsense: str) -> None:
    lines = [[nonsense], [f"192.0.2.1, {nonsense}"], [f"192.0.2.1, {nonsense}, 10.0.0.1"]]
    assert await addresses_of(PROXIES, *lines) == [PEER, PEER, "10.0.0.1"]


@pytest.mark.parametrize(
    ("entry", "address"),
    [
        ("192.0.2.1:4711", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:DB8::1]", "2001:db8::1"),
        ("[2001:db8::1]:4711", "2001:db8::1"),
        ('"[2001:db8::1]:4711"', "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
        ("fe80::1%eth0", "fe80::1"),
    ],
)
async def test_an_address_is_known_in_all_its_forms(entry: str, address: str) -> None:
    assert await addresses_of(PROXIES, [entry]) == [address]


async def test_a_proxy_is_known_by_its_mapped_address() -> None:
    assert await addresses_of(PROXIES, ["192.0.2.1, ::ffff:10.0.0.1"]) == ["192.0.2.1"]


async def test_the_same_headers_from_another_client_are_not_taken_for_the_first_one() -> None:
    app = telling_addresses()
    for peer in ("192.0.2.2", "192.0.2.3", "192.0.2.2"):
        async with client_of(app, peer) as http:
            assert (await _client(http, ["192.0.2.9"]))[0] == peer


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
    ],
)
async def test_a_household_counts_as_one(address: str, name: str) -> None:
    async with client_of(telling_addresses(*PROXIES)) as http:
        assert (await _client(http, [address]))[1] == name
