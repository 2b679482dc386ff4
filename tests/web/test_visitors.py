"""Who asks for a hold, as the header lines tell it. The peer of these tests is 127.0.0.1."""

import pytest

from holdfast.domain.errors import Fault
from holdfast.operations.bookings import Requester
from holdfast.settings import Settings
from holdfast.web.client_address import ClientAddresses
from holdfast.web.request import Request
from holdfast.web.visitors import parse_requester

PEER = "127.0.0.1"
COOKIE = "0123456789abcdef"
POINTER = "/header/Idempotency-Key"


def told(*lines: str, trusted: str = "") -> tuple[Requester, list[str]]:
    """Return who asks, and where the faults are."""
    named = [line.encode("latin-1").partition(b":")[::2] for line in lines]
    headers = [(name.lower(), value.strip(b" ")) for name, value in named]
    scope = {"type": "http", "headers": headers, "client": (PEER, 50000), "state": {"headers": dict(headers)}}
    request = Request(scope)
    proxies = Settings.from_environment({"HOLDFAST_TRUSTED_PROXIES": trusted}).trusted_proxies
    request.client_address = ClientAddresses(proxies).find(scope)
    faults: list[Fault] = []
    return parse_requester(request, faults), [fault.pointer for fault in faults]


def visitor(cookie_line: str) -> str | None:
    return told(f"Cookie: {cookie_line}")[0].visitor


def test_whoever_says_nothing_is_known_by_the_address() -> None:
    assert told() == (Requester(PEER), [])


def test_behind_a_proxy_it_is_the_address_that_the_proxy_names() -> None:
    forwarded = "X-Forwarded-For: 192.0.2.1"
    assert told(forwarded, trusted="127.0.0.0/8")[0].address == "192.0.2.1"
    assert told(forwarded)[0].address == PEER


def test_an_address_of_ipv6_is_that_of_its_household() -> None:
    requester, _ = told("X-Forwarded-For: 2001:db8::7", trusted="127.0.0.0/8")
    assert requester.address == "2001:db8::/64"


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
def test_the_cookie_is_found_among_others(line: str) -> None:
    assert visitor(line) == COOKIE


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
def test_what_our_pages_did_not_make_is_no_cookie(line: str) -> None:
    assert visitor(line) is None


@pytest.mark.parametrize("value", ["x" * 8, "x" * 128, "A-z_0.9~"])
def test_a_cookie_is_taken_as_it_is(value: str) -> None:
    assert visitor(f"holdfast_visitor={value}") == value


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("Idempotency-Key: k", "k"),
        ("idempotency-key:  a b;c=d  ", "a b;c=d"),
        ('Idempotency-Key: "quoted"', '"quoted"'),
        (f"Idempotency-Key: {'k' * 255}", "k" * 255),
    ],
)
def test_an_idempotency_key_is_any_printable_text(line: str, key: str) -> None:
    requester, faults = told(line)
    assert (requester.idempotency_key, faults) == (key, [])


@pytest.mark.parametrize("value", ["", "   ", "k" * 256, "schlüssel", "a\tb"])
def test_a_bad_idempotency_key_is_a_fault(value: str) -> None:
    assert told(f"Idempotency-Key: {value}")[1] == [POINTER]


def test_two_idempotency_keys_are_a_fault() -> None:
    assert told("Idempotency-Key: one", "Idempotency-Key: one")[1] == [POINTER]
