"""What the URL of an endpoint may be, in every spelling that leads somewhere."""

from collections.abc import AsyncIterator
from ipaddress import ip_network

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.endpoint_url import EndpointUrl, InvalidEndpointUrl, parse_endpoint_url
from holdfast.webhooks.address_guard import AddressGuard, find_url_error
from holdfast.webhooks.resolver import Resolver
from tests.support.name_server import NameServer, name_server
from tests.support.receiver_posts import LOOPBACK

STRICT = AddressGuard([])
OPEN = AddressGuard([ip_network(text) for text in LOOPBACK])
NOT_A_HOST = "The URL's host is not a host name or an IP address."
NOT_IPV4 = "The URL's host is not a valid IPv4 address."
LEAVE_AS_IS = "/a//b/../c;d=e,f?g=[h]&i=%20@:!$'()*+~"
STRANGE = "The URL must not have spaces, backslashes or invisible characters."


@pytest.fixture
async def names() -> AsyncIterator[NameServer]:
    async with name_server(
        public=["93.184.216.34"], private=["10.0.0.1"], mixed=["93.184.216.34", "::1"]
    ) as server:
        yield server


@pytest.fixture
async def resolver(names: NameServer) -> AsyncIterator[Resolver]:
    resolver = Resolver([names.place])
    yield resolver
    await resolver.close()


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "The URL must begin with https://."),
        ("ftp://shop.example/", "The URL must begin with https://."),
        ("//shop.example/", "The URL must begin with https://."),
        ("https:shop.example", "The URL must begin with https://."),
        ("javascript://shop.example/%0aalert(1)", "The URL must begin with https://."),
        ("https://", "The URL has no host."),
        ("https:///path", "The URL has no host."),
        ("https://:443/", "The URL has no host."),
        ("https://user@shop.example/", "The URL must not have a user name or password."),
        ("https://user:secret@shop.example/", "The URL must not have a user name or password."),
        ("https://@shop.example/", "The URL must not have a user name or password."),
        ("https://shop.example/#part", "The URL must not have a fragment (#…)."),
        ("https://shop.example/#", "The URL must not have a fragment (#…)."),
        ("https://shop.example:0/", "The URL's port must be a number from 1 to 65535."),
        ("https://shop.example:65536/", "The URL's port must be a number from 1 to 65535."),
        ("https://shop.example:/", "The URL's port must be a number from 1 to 65535."),
        ("https://shop.example:٤٤٣/", "The URL's port must be a number from 1 to 65535."),
        ("https://shop.example:1:2/", "The URL's port must be a number from 1 to 65535."),
        ("https://shop.example/a b", STRANGE),
        (" https://shop.example/", STRANGE),
        ("https://shop.example/\n", STRANGE),
        ("https://shop.example\t/", STRANGE),
        ("https://shop.example/\x7f", STRANGE),
        ("https://shop.example/\u202egpj.exe", STRANGE),
        ("https://shop.example\\@10.0.0.1/", STRANGE),
        ("https://shop.example/\ud800", STRANGE),
        ("https://a..b/", NOT_A_HOST),
        ("https://shop.example../", NOT_A_HOST),
        ("https://.example/", NOT_A_HOST),
        ("https://-shop.example/", NOT_A_HOST),
        ("https://%31%30.0.0.1/", NOT_IPV4),
        ("https://sh%6fp.example/", NOT_A_HOST),
        (f"https://{'a' * 64}.example/", NOT_A_HOST),
        (f"https://{'a.' * 127}example/", NOT_A_HOST),
        ("https://[::1/", NOT_A_HOST),
        ("https://[::1]x/", NOT_A_HOST),
        ("https://[v1.x]/", "The URL's host is not a valid IPv6 address."),
        ("https://[1.2.3.4]/", "The URL's host is not a valid IPv6 address."),
        ("https://[fe80::1%25eth0]/", "The URL's host must not have a zone (%…)."),
        ("https://256.0.0.1/", NOT_IPV4),
        ("https://1.2.3.4.5/", NOT_IPV4),
        ("https://8.8.8.8.0/", NOT_IPV4),
        ("https://127.0.0.1.0/", NOT_IPV4),
        ("https://127.0.0.1.0x0./", NOT_IPV4),
        ("https://0.0.0.0.0.0/", NOT_IPV4),
        ("https://1.2.3.08/", NOT_IPV4),
        ("https://4294967296/", NOT_IPV4),
        ("https://shop.1/", NOT_IPV4),
        (
            "https://straße.example/",
            "The URL's host has characters of more than one reading: write it in its xn-- form.",
        ),
        ("https://shop.example/" + "a" * 1980, "The URL must have at most 2000 characters."),
    ],
)
def test_a_url_that_cannot_be_an_endpoint_is_told_why(url: str, fault: str) -> None:
    with pytest.raises(InvalidEndpointUrl) as refused:
        parse_endpoint_url(url)
    assert str(refused.value) == fault


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0X7F000001", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("127.0.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("0x", "0.0.0.0"),
        ("1２7.0.0.1", "127.0.0.1"),
        ("127。0。0。1", "127.0.0.1"),
        ("169.254.43518", "169.254.169.254"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::ffff:10.0.0.1]", "::ffff:a00:1"),
        ("[::FFFF:0A00:0001]", "::ffff:a00:1"),
        ("[64:ff9b::10.0.0.1]", "64:ff9b::a00:1"),
    ],
)
async def test_an_address_is_known_and_refused_in_every_spelling(
    host: str, address: str, resolver: Resolver
) -> None:
    assert str(parse_endpoint_url(f"https://{host}/").address) == address
    fault = await find_url_error(f"https://{host}/", STRICT, resolver)
    assert fault is not None
    assert str(fault).startswith(f"The URL's host is {address}, which is ")


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("https://shop.example", ("https", "shop.example", 443, "/")),
        ("HTTPS://Shop.Example.:0443/A?b", ("https", "shop.example", 443, "/A?b")),
        ("https://shop.example?q=1", ("https", "shop.example", 443, "/?q=1")),
        ("http://my_shop.example:8080/x", ("http", "my_shop.example", 8080, "/x")),
        (
            "https://مثال.السعودية/أ?ب=%D8",
            ("https", "xn--mgbh0fb.xn--mgberp4a5d4ar", 443, "/%D8%A3?%D8%A8=%D8"),
        ),
        ('https://shop.example/{"a"}|<^`>', ("https", "shop.example", 443, "/%7B%22a%22%7D%7C%3C%5E%60%3E")),
        (f"https://shop.example{LEAVE_AS_IS}", ("https", "shop.example", 443, LEAVE_AS_IS)),
    ],
)
def test_what_is_contacted_is_read_out_of_the_url(url: str, read: tuple[str, str, int, str]) -> None:
    assert parse_endpoint_url(url)[:4] == read


@pytest.mark.parametrize(
    ("url", "header"),
    [
        ("https://shop.example:443/", "shop.example"),
        ("https://shop.example:80/", "shop.example:80"),
        ("http://shop.example:80/", "shop.example"),
        ("https://[2606:4700::1111]:8443/", "[2606:4700::1111]:8443"),
    ],
)
def test_the_host_header_names_the_port_only_where_it_must(url: str, header: str) -> None:
    assert parse_endpoint_url(url).host_header == header


@given(
    st.text(max_size=60).map(lambda text: f"https://{text}")
    | st.from_regex(r"https?://[!-~]{0,40}", fullmatch=True)
)
@example("https://[")
@example("https://0x.0x.0x.0x/")
def test_any_text_is_either_refused_or_read_to_something_that_fits_a_request_line(text: str) -> None:
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
        ("https://user@public.example/", "The URL must not have a user name or password."),
    ],
)
async def test_a_url_is_checked_when_it_is_saved(url: str, fault: str | None, resolver: Resolver) -> None:
    assert _text(await find_url_error(url, STRICT, resolver)) == fault


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "api.localhost"])
async def test_localhost_is_loopback(host: str, resolver: Resolver) -> None:
    fault = await find_url_error(f"https://{host}/", STRICT, resolver)
    assert fault is not None
    assert str(fault).endswith(", which is a loopback address.")
    assert await find_url_error(f"http://{host}:8000/", OPEN, resolver) is None


@pytest.mark.parametrize("network", LOOPBACK)
async def test_one_family_of_loopback_is_enough_for_localhost(network: str, resolver: Resolver) -> None:
    guard = AddressGuard([ip_network(network)])
    assert await find_url_error("http://localhost:8000/", guard, resolver) is None


@pytest.mark.parametrize(
    "url", ["http://public.example/", "http://93.184.216.34/", "http://not-there-yet.example/"]
)
async def test_http_is_refused_on_save_outside_the_allowed_networks(url: str, resolver: Resolver) -> None:
    expected = "The URL must begin with https://: http is for addresses in the allowed networks only."
    assert await find_url_error(url, OPEN, resolver) == expected


async def test_a_name_server_that_fails_does_not_keep_a_public_name_from_being_saved(
    names: NameServer, resolver: Resolver
) -> None:
    names.failing.add("broken.example")
    names.hanging.add("hung.example")
    assert await find_url_error("https://broken.example/", STRICT, resolver) is None
    assert await find_url_error("https://hung.example/", STRICT, resolver) is None


def _text(message: object) -> str | None:
    return None if message is None else str(message)
