"""Who asks for a hold, as the header lines tell it. The peer of these tests is 127.0.0.1."""

import json
from typing import Any

import pytest

from holdfast.domain.refusals import Fault
from holdfast.settings import Settings
from holdfast.web.answer import JsonAnswer
from holdfast.web.call import Call
from holdfast.web.client_address import ClientAddresses
from holdfast.web.front import Front
from holdfast.web.routing import resource
from holdfast.web.storefront.visitors import requester_of
from tests.web.connecting import answer_of, connected

PEER = "127.0.0.1"
COOKIE = "0123456789abcdef"
POINTER = "/header/Idempotency-Key"


def telling_requesters(trusted: str = "") -> Front:
    addresses = ClientAddresses(
        Settings.from_environment({"HOLDFAST_TRUSTED_PROXIES": trusted}).trusted_proxies
    )

    async def tell(call: Call) -> JsonAnswer:
        faults: list[Fault] = []
        requester = requester_of(call, addresses, faults)
        return JsonAnswer({**requester._asdict(), "faults": [fault.pointer for fault in faults]})

    return Front([resource("/hold", POST=tell)])


async def told(*lines: str, trusted: str = "") -> dict[str, Any]:
    head = "\r\n".join(["POST /hold HTTP/1.1", "Host: holdfast.example", *lines, "", ""])
    async with connected(telling_requesters(trusted)) as (reader, writer):
        writer.write(head.encode("latin-1"))
        answer: dict[str, Any] = json.loads(await answer_of(reader))
    return answer


async def visitor(cookie_line: str) -> str | None:
    found: str | None = (await told(f"Cookie: {cookie_line}"))["visitor"]
    return found


async def test_whoever_says_nothing_is_known_by_the_address() -> None:
    known = {"address": PEER, "visitor": None, "idempotency_key": None}
    nobody: dict[str, Any] = {**known, "secret": None, "faults": []}
    assert await told() == nobody


async def test_behind_a_proxy_it_is_the_address_that_the_proxy_names() -> None:
    forwarded = "X-Forwarded-For: 192.0.2.1"
    assert (await told(forwarded, trusted="127.0.0.0/8"))["address"] == "192.0.2.1"
    assert (await told(forwarded))["address"] == PEER


async def test_an_address_of_ipv6_is_that_of_its_household() -> None:
    answer = await told("X-Forwarded-For: 2001:db8::7", trusted="127.0.0.0/8")
    assert answer["address"] == "2001:db8::/64"


@pytest.mark.parametrize(
    "line",
    [
        f"holdfast_visitor={COOKIE}",
        f'holdfast_visitor="{COOKIE}"',
        f"  holdfast_visitor={COOKIE}  ",
        f"theme=dark; holdfast_visitor={COOKIE}",
        f"holdfast_visitor={COOKIE}; theme=dark",
        f"a=1;holdfast_visitor={COOKIE};b=2",
        f"a=holdfast_visitor; b==; holdfast_visitor={COOKIE} ; c",
    ],
)
async def test_the_cookie_is_found_among_others(line: str) -> None:
    assert await visitor(line) == COOKIE


@pytest.mark.parametrize(
    "line",
    [
        "",
        "theme=dark",
        "holdfast_visitor=",
        "holdfast_visitor=short",
        "holdfast_visitor=0123456é89abcdef",
        f"holdfast_visitor={'x' * 129}",
        f"holdfast_visitor={COOKIE} {COOKIE}",
        f"holdfast_visitor={COOKIE}<script>",
        f"holdfast_visitor = {COOKIE}",
        f"Holdfast_Visitor={COOKIE}",
        f"my_holdfast_visitor={COOKIE}",
        f"holdfast_visitor_id={COOKIE}",
        f"theme=holdfast_visitor={COOKIE}",
    ],
)
async def test_what_our_pages_did_not_make_is_no_cookie(line: str) -> None:
    assert await visitor(line) is None


@pytest.mark.parametrize("value", ["x" * 8, "x" * 128, "A-z_0.9~"])
async def test_a_cookie_is_taken_as_it_is(value: str) -> None:
    assert await visitor(f"holdfast_visitor={value}") == value


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("Idempotency-Key: k", "k"),
        ("idempotency-key:  a b;c=d  ", "a b;c=d"),
        ('Idempotency-Key: "quoted"', '"quoted"'),
        (f"Idempotency-Key: {'k' * 255}", "k" * 255),
    ],
)
async def test_an_idempotency_key_is_any_printable_text(line: str, key: str) -> None:
    answer = await told(line)
    assert (answer["idempotency_key"], answer["faults"]) == (key, [])


@pytest.mark.parametrize("value", ["", "   ", "k" * 256, "schlüssel", "a\tb"])
async def test_a_bad_idempotency_key_is_a_fault(value: str) -> None:
    assert (await told(f"Idempotency-Key: {value}"))["faults"] == [POINTER]


async def test_two_idempotency_keys_are_a_fault() -> None:
    answer = await told("Idempotency-Key: one", "Idempotency-Key: one")
    assert answer["faults"] == [POINTER]
