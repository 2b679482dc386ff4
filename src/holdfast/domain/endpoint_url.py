"""The URL of an endpoint: read strictly, so that what was checked is what is contacted. Pure."""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import quote

from holdfast.domain.addresses import IPAddress
from holdfast.domain.errors import Message, MessageError

LONGEST_URL = 2000
_LONGEST_NAME = 253
_PARTS = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)(?P<fragment>#.*)?"
)
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_PORTS = {"http": 80, "https": 443}
_WRONG_HOST = "The URL's host must be a host name such as erp.example.com, or an IP address."
# What may stand in a request line as it is; everything else is percent-encoded, as browsers do.
_KEPT = "/?:@!$&'()*+,;=%~-._[]"
# The older rules of the standard library and those in use today turn these into different names.
_AMBIGUOUS = frozenset("ßςẞ\u200c\u200d")
_NOT_PUBLIC = (
    "localhost", "local", "internal", "home.arpa", "lan", "intranet", "corp", "home", "private", "onion",
)  # fmt: skip


class InvalidEndpointUrl(MessageError):
    """The URL cannot be one of an endpoint; the message is for the person who typed it."""


class EndpointUrl(NamedTuple):
    """``host`` is in lower case, in ASCII, and without the dot at its end or the brackets of IPv6."""

    scheme: str
    host: str
    port: int
    request_target: str
    address: IPAddress | None
    """The address, where the host is one, in whatever spelling."""

    @property
    def is_encrypted(self) -> bool:
        return self.scheme == "https"

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if isinstance(self.address, IPv6Address) else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def parse_endpoint_url(text: str) -> EndpointUrl:
    """Raise ``InvalidEndpointUrl``; the addresses of the host are checked elsewhere."""
    if len(text) > LONGEST_URL:
        message = "The URL must have at most %(count)s characters."
        raise InvalidEndpointUrl(Message(message, {"count": LONGEST_URL}))
    if not text.isprintable() or " " in text or "\\" in text:
        raise InvalidEndpointUrl("The URL must not have spaces, backslashes or invisible characters.")
    parts = _PARTS.fullmatch(text)
    if parts is None or parts["scheme"].lower() not in _PORTS:
        raise InvalidEndpointUrl(
            "The URL must begin with https://, as in https://erp.example.com/hooks, or with http:// in an"
            " allowed network."
        )
    if parts["fragment"] is not None:
        raise InvalidEndpointUrl("The URL must not have a fragment (#…).")
    scheme = parts["scheme"].lower()
    host, port = _host_and_port(parts["authority"], _PORTS[scheme])
    address = _address(host)
    name = _name(host) if address is None else str(address)
    path = parts["rest"] if parts["rest"].startswith("/") else f"/{parts['rest']}"
    return EndpointUrl(scheme, name, port, quote(path, safe=_KEPT), address)


def is_public_name(host: str) -> bool:
    """Tell whether public DNS could resolve the name, once it exists."""
    return "." in host and not any(host == suffix or host.endswith(f".{suffix}") for suffix in _NOT_PUBLIC)


def _host_and_port(authority: str, default_port: int) -> tuple[str, int]:
    if "@" in authority:
        raise InvalidEndpointUrl("The URL must not have a user name or password.")
    found = _AUTHORITY.fullmatch(authority)
    if found is None:
        raise InvalidEndpointUrl(_WRONG_HOST)
    if not found["host"]:
        raise InvalidEndpointUrl("The URL must name a host, as in https://erp.example.com/hooks.")
    port = found["port"]
    if port is None:
        return found["host"], default_port
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 65536):
        raise InvalidEndpointUrl("The URL's port must be a number from 1 to 65535.")
    return found["host"], int(port)


def _address(host: str) -> IPAddress | None:
    if not host.startswith("["):
        labels = _ascii(host).removesuffix(".").split(".")
        return _ipv4(labels) if _NUMBER.fullmatch(labels[-1]) else None
    try:
        address = IPv6Address(host[1:-1])
    except AddressValueError:
        raise InvalidEndpointUrl("The URL's host is not a valid IPv6 address.") from None
    if address.scope_id is not None:
        raise InvalidEndpointUrl("The URL's host must not have a zone (%…).")
    return address


def _ipv4(labels: list[str]) -> IPv4Address:
    """As every resolver of C and every browser reads it: 127.1, 0x7f.0.0.1, 017700000001, 2130706433."""
    try:
        *leading, last = map(_number, labels)
        if len(leading) > 3 or any(number > 255 for number in leading):
            raise AddressValueError
        # What the other numbers leave of the 32 bits is the last one's.
        if last.bit_length() > 32 - 8 * len(leading):
            raise AddressValueError
        return IPv4Address(last + sum(number << (24 - 8 * place) for place, number in enumerate(leading)))
    except ValueError:
        raise InvalidEndpointUrl("The URL's host is not a valid IPv4 address.") from None


def _number(label: str) -> int:
    """Octal after a 0, hexadecimal after 0x; a bare 0x is 0."""
    if not _NUMBER.fullmatch(label):
        raise AddressValueError
    if label[:2] in ("0x", "0X"):
        return int(label[2:] or "0", 16)
    return int(label, 8 if label[0] == "0" else 10)


def _name(host: str) -> str:
    name = _ascii(host).removesuffix(".")
    if len(name) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, name.split("."))):
        raise InvalidEndpointUrl(_WRONG_HOST)
    return name


def _ascii(host: str) -> str:
    if host.isascii():
        return host.lower()
    if _AMBIGUOUS & set(host):
        raise InvalidEndpointUrl("The URL's host contains ambiguous characters: write it in its xn-- form.")
    try:
        return host.encode("idna").decode().lower()
    except UnicodeError:
        raise InvalidEndpointUrl(_WRONG_HOST) from None
