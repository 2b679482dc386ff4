"""Where a request comes from, with and without proxies. The peer of these tests is 127.0.0.1."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network

import httpx
import pytest

from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.front import Front
from holdfast.web.http.connection import Application
from holdfast.web.refusals import ClientGone
from holdfast.web.routing import resource
from tests.support.http_serving import client_of
from tests.web.connecting import REQUEST, connected, in_two_turns

PEER = "127.0.0.1"
PROXIES = ("127.0.0.0/8", "10.0.0.0/8", "2001:db8:ffff::/48")


def telling_addresses(*trusted: str) -> Application:
    addresses = ClientAddresses([ip_network(network) for network in trusted])

    async def tell(call: Call) -> JsonAnswer:
        return JsonAnswer(str(addresses.find(call).address))

    return Front([resource("/", GET=tell)])


async def addresses_of(trusted: Sequence[str], *forwarded: Sequence[str]) -> list[str]:
    """What is told to requests with these lines of X-Forwarded-For, on one connection."""
    async with client_of(telling_addresses(*trusted)) as http:
        return [await _address(http, lines) for lines in forwarded]


async def _address(http: httpx.AsyncClient, lines: Sequence[str]) -> str:
    response = await http.get("/", headers=[(b"X-Forwarded-For", line.encode("latin-1")) for line in lines])
    return str(response.json())


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


async def test_the_same_header_lines_from_another_client_are_not_taken_for_the_first_one() -> None:
    """Heads are remembered over all connections, and say nothing of who is at the other end."""
    async with client_of(telling_addresses()) as http:
        for local in ("127.0.0.2", "127.0.0.3", "127.0.0.2"):
            transport = httpx.AsyncHTTPTransport(local_address=local)
            async with httpx.AsyncClient(base_url=http.base_url, transport=transport) as client:
                assert (await client.get("/")).json() == local


async def test_a_client_that_has_left_has_no_address_and_gets_no_answer() -> None:
    asked, left, outcomes = asyncio.Event(), asyncio.Event(), asyncio.Queue[type[Exception]]()

    async def ask_too_late(call: Call) -> JsonAnswer:
        asked.set()
        await left.wait()
        try:
            return JsonAnswer(str(ClientAddresses([]).find(call).address))
        except ClientGone:
            outcomes.put_nowait(ClientGone)
            raise

    async with connected(Front([resource("/slow", GET=ask_too_late)])) as (_, writer):
        writer.write(REQUEST)
        await asked.wait()
        writer.transport.abort()
        await in_two_turns()
        left.set()
        assert await outcomes.get() is ClientGone


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
    addresses = ClientAddresses([ip_network(network) for network in PROXIES])

    async def tell(call: Call) -> JsonAnswer:
        return JsonAnswer(addresses.find(call).counted_as)

    async with client_of(Front([resource("/", GET=tell)])) as http:
        assert await _address(http, [address]) == name
