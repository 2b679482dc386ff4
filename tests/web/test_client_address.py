"""Where a request comes from, with and without proxies, and who asks for a hold. The peer is 127.0.0.1."""

import pytest

from holdfast.domain.errors import Fault
from holdfast.operations.bookings import Requester
from holdfast.settings import Settings
from holdfast.web import visitors
from holdfast.web.client_address import ClientAddresses
from holdfast.web.request import Request

PEER = "127.0.0.1"
WIDE = "2001:db8:1::/48"
PROXIES = "127.0.0.0/8,10.0.0.0/8,2001:db8:ffff::/48"
COOKIE = "0123456789abcdef"
POINTER = "/header/Idempotency-Key"


def addresses(trusted: str) -> ClientAddresses:
    return ClientAddresses(Settings.from_environment({"HOLDFAST_TRUSTED_PROXIES": trusted}).trusted_proxies)


def address_of(*forwarded: str, trusted: str = PROXIES, peer: str = PEER) -> str:
    """The address of a request with these lines of X-Forwarded-For."""
    headers = [(b"x-forwarded-for", line.encode("latin-1")) for line in forwarded]
    return addresses(trusted).find({"headers": headers, "client": (peer, 50_000)}).text


def test_without_a_trusted_proxy_it_is_the_peer_whatever_is_forwarded() -> None:
    for trusted in ("", "10.0.0.0/8"):
        assert address_of(trusted=trusted) == address_of("192.0.2.1", trusted=trusted) == PEER
    assert address_of() == address_of("") == address_of(", ,") == PEER


@pytest.mark.parametrize(
    "lines",
    [
        ["192.0.2.1"], ["198.51.100.9, 192.0.2.1"], ["192.0.2.1, 10.0.0.1"], ["192.0.2.1, 2001:db8:ffff::1"],
        ["198.51.100.9,192.0.2.1,10.1.1.1,10.2.2.2"], ["127.0.0.1, 192.0.2.1"], ["192.0.2.1,, ,10.0.0.1,"],
        ["192.0.2.1, ::ffff:10.0.0.1"], ["192.0.2.1", ""], ["", "192.0.2.1"],
        ["198.51.100.9, 192.0.2.1", "10.0.0.1"],
    ],
)  # fmt: skip
def test_it_is_the_rightmost_address_of_all_lines_that_is_no_proxy(lines: list[str]) -> None:
    assert address_of(*lines) == "192.0.2.1"


def test_of_proxies_alone_it_is_the_farthest() -> None:
    assert address_of("10.0.0.1, 10.0.0.2") == "10.0.0.1"


@pytest.mark.parametrize(
    "nonsense", ["unknown", "192.0.2", "192.0.2.1.5", "[::1", "é", "192.0.2.1:x", "_hidden"]
)
def test_nothing_beyond_nonsense_is_believed(nonsense: str) -> None:
    assert address_of(nonsense) == address_of(f"192.0.2.1, {nonsense}") == PEER
    assert address_of(f"192.0.2.1, {nonsense}, 10.0.0.1") == "10.0.0.1"


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
def test_an_address_is_known_in_all_its_forms(entry: str, address: str) -> None:
    assert address_of(entry) == address


def test_the_same_headers_from_another_client_are_not_taken_for_the_first_one() -> None:
    found = addresses("")
    for peer in ("192.0.2.2", "192.0.2.3", "192.0.2.2"):
        assert found.find({"headers": [], "client": (peer, 50_000)}).text == peer
    assert found.find({"headers": [], "client": None}).text == PEER
    assert found.find({"headers": [], "client": ("testclient", 1)}).text == "0.0.0.0"


def requester_of(*lines: str, trusted: str = "") -> tuple[Requester, list[str]]:
    """Who asks with these header lines, and where the faults are."""
    named = [line.encode("latin-1").partition(b":")[::2] for line in lines]
    headers = [(name.lower(), value.strip(b" ")) for name, value in named]
    scope = {"type": "http", "headers": headers, "client": (PEER, 50000), "state": {"headers": dict(headers)}}
    request = Request(scope)
    request.client_address = addresses(trusted).find(scope)
    faults: list[Fault] = []
    key = visitors.read_idempotency_key(request, faults)
    requester = visitors.requester_of(request, visitors.read_visitor_cookie(request), key)
    return requester, [fault.pointer for fault in faults]


def test_whoever_says_nothing_is_known_by_the_address() -> None:
    for address in ("192.0.2.1", "2001:db8:1:2:3:4:5:6"):
        line = f"X-Forwarded-For: {address}"
        assert requester_of(line, trusted=PROXIES) == (Requester(address), [])
        assert requester_of(line) == requester_of() == (Requester(PEER), [])


@pytest.mark.parametrize(
    "line",
    [
        f"holdfast_visitor={COOKIE}",
        f'holdfast_visitor="{COOKIE}"',
        f"  holdfast_visitor={COOKIE}  ",
        f"theme=dark; holdfast_visitor={COOKIE}",
        f"a=1;holdfast_visitor={COOKIE};b=2",
        f"a=holdfast_visitor; b==; holdfast_visitor={COOKIE} ; c",
    ],
)
def test_the_cookie_is_found_among_others_and_taken_as_it_is(line: str) -> None:
    for value in (COOKIE, "x" * 8, "x" * 128, "A-z_0.9~"):
        assert requester_of(f"Cookie: {line.replace(COOKIE, value)}")[0].visitor == value


@pytest.mark.parametrize(
    "line",
    [
        "", "theme=dark", "holdfast_visitor=", "holdfast_visitor=short", "holdfast_visitor=0123456é89abcdef",
        f"holdfast_visitor={'x' * 129}", f"holdfast_visitor={COOKIE} {COOKIE}",
        f"holdfast_visitor={COOKIE}<script>", f"holdfast_visitor = {COOKIE}", f"Holdfast_Visitor={COOKIE}",
        f"my_holdfast_visitor={COOKIE}", f"holdfast_visitor_id={COOKIE}", f"theme=holdfast_visitor={COOKIE}",
        f"{';' * 1000}holdfast_visitor={COOKIE}",
    ],
)  # fmt: skip
def test_what_our_pages_did_not_make_is_no_cookie(line: str) -> None:
    assert requester_of(f"Cookie: {line}")[0].visitor is None


def test_an_idempotency_key_is_any_printable_text_given_once() -> None:
    for value in ("k" * 16, "a b;c=d and so on", '"quoted and long"', "k" * 255):
        requester, faults = requester_of(f"idempotency-key:  {value}  ")
        assert (requester.idempotency_key, faults) == (value, [])
    for wrong in ("", "   ", "k" * 15, "k" * 256, "schlüssel schlüssel", "a\tb a\tb a\tb a\tb"):
        assert requester_of(f"Idempotency-Key: {wrong}")[1] == [POINTER]
    assert requester_of(*[f"Idempotency-Key: {'k' * 16}"] * 2)[1] == [POINTER]
