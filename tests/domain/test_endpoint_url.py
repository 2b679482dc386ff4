"""The URLs of endpoints, in every spelling that leads somewhere."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.domain.endpoint_url import EndpointUrl, InvalidEndpointUrl, parse_endpoint_url

NOT_HTTPS = (
    "The URL must begin with https://, as in https://erp.example.com/hooks, or with http:// in an"
    " allowed network."
)
NO_USER = "The URL must not have a user name or password."
STRANGE = "The URL must not have spaces, backslashes or invisible characters."
ARABIC_HOST = "xn--mgbh0fb.xn--mgberp4a5d4ar"
LEAVE_AS_IS = "/a//b/../c;d=e,f?g=[h]&i=%20@:!$'()*+~"
REFUSED = {
    NOT_HTTPS: """
        ftp://shop.example/ //shop.example/ https:shop.example javascript://shop.example/%0a
    """,
    "The URL must name a host, as in https://erp.example.com/hooks.": "https:// https:///path https://:443/",
    NO_USER: "https://user@shop.example/ https://user:secret@shop.example/ https://@shop.example/",
    "The URL must not have a fragment (#…).": "https://shop.example/#part https://shop.example/#",
    "The URL's port must be a number from 1 to 65535.": """
        https://shop.example:0/ https://shop.example:65536/ https://shop.example:/ https://shop.example:٤٤٣/
        https://shop.example:1:2/
    """,
    "The URL's host must be a host name such as erp.example.com, or an IP address.": f"""
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
    "The URL's host contains ambiguous characters: write it in its xn-- form.": """
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
