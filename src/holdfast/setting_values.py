"""What a setting may be: each function reads one kind of value, or says what is wrong with it."""

import base64
import math
import re
from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import available_timezones

IPNetwork = IPv4Network | IPv6Network

_HOST_AND_PORT = re.compile(r"^(\[[^\]]+\]|[^:\[\]]*)(:(.*))?$")
_LONGEST_COUNT = 12
_SHORTEST_SECRET = 16
# Of plain letters: it becomes a part of a header, too.
_PAYMENT_PAGE = re.compile(
    r"(?i:(https?))://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(?:/[A-Za-z0-9._~!$&'()*+,=:@%/-]*)?"
)
_LOOPBACK_HOST = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]")
_MAPPED = IPv6Network("::ffff:0:0/96")


class WrongSetting(Exception):
    """A setting that cannot be used; the text is one sentence for the person who set it."""

    def __init__(self, name: str, given: str, accepted: str) -> None:
        super().__init__(f"{name} is {given!r}, but must be {accepted}.")


class MissingSetting(WrongSetting):
    def __init__(self, name: str, where: str) -> None:
        Exception.__init__(self, f"{name} is not set, but must be {where}.")


def directory(given: Mapping[str, str], name: str, default: str) -> Path:
    value = given.get(name, default)
    if "\0" in value:
        raise WrongSetting(name, value, "the path of a directory")
    path = Path(value).expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise WrongSetting(name, value, "the path of a directory")
    return path


def rate(given: Mapping[str, str], name: str, default: float) -> float:
    return _number(given, name, default, math.inf, "a number of 0 (off) or more")


def gap(given: Mapping[str, str], name: str, default: float, most: float) -> float:
    return _number(given, name, default, most, f"a number of seconds from 0 (off) to {most:g}")


def duration(given: Mapping[str, str], name: str, default: float, most: float, unit: str) -> float:
    accepted = f"a number of {unit} over 0 and up to {most:g}"
    number = _number(given, name, default, most, accepted)
    if number == 0:
        raise WrongSetting(name, given[name], accepted)
    return number


def _number(given: Mapping[str, str], name: str, default: float, most: float, accepted: str) -> float:
    value = given.get(name)
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and 0 <= number <= most):
        raise WrongSetting(name, value, accepted)
    return number


def count(given: Mapping[str, str], name: str, default: int, least: int, most: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    is_whole = value.isascii() and value.isdecimal() and len(value) <= _LONGEST_COUNT
    if not (is_whole and least <= int(value) <= most):
        start = "0 (off)" if least == 0 else least
        raise WrongSetting(name, value, f"a whole number from {start} to {most}")
    return int(value)


def networks(given: Mapping[str, str], name: str) -> tuple[IPNetwork, ...]:
    value = given.get(name, "")
    try:
        return tuple(_network(entry.strip()) for entry in value.split(",") if entry.strip())
    except ValueError:
        accepted = "IP addresses or networks such as 10.0.0.0/8, with commas between them"
        raise WrongSetting(name, value, accepted) from None


def _network(text: str) -> IPNetwork:
    network = ip_network(text)
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        # Clients of IPv4 are known by that, whatever kind of socket they come in by.
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    return network


def database_url(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not _is_database_url(value):
        # The password must not end up in a log, so the value itself is not repeated.
        accepted = "postgresql://USER:PASSWORD@HOST[:PORT][,HOST[:PORT]]/DATABASE"
        raise WrongSetting(name, _without_password(value), accepted)
    return value


def _is_database_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
    except ValueError:
        return False
    hosts = parts.netloc.rpartition("@")[2].split(",")
    ports = dict(parse_qsl(parts.query)).get("port", "5432").split(",")
    return (
        parts.scheme in ("postgresql", "postgres")
        and "://" in value
        and all(map(_is_host, hosts))
        and all(map(_is_port, ports))
    )


def _is_host(spec: str) -> bool:
    found = _HOST_AND_PORT.match(spec)
    return found is not None and (found[3] is None or _is_port(found[3]))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65536


def _without_password(url: str) -> str:
    return re.sub(r"(//[^:/@]*):.*@", r"\1:…@", url)


def encryption_keys(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    keys = tuple(entry.strip() for entry in given.get(name, "").split(",") if entry.strip())
    if not all(map(_is_encryption_key, keys)):
        # A key must not end up in a log.
        raise WrongSetting(name, "…", "keys of 32 bytes in URL-safe base64, with commas between them")
    return keys


def _is_encryption_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text.encode(), altchars=b"-_", validate=True)) == 32
    except ValueError:
        return False


def public_url(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not _is_origin(value):
        raise WrongSetting(name, value, "http:// or https:// with a host, and no path or trailing slash")
    return value


def payment_url(given: Mapping[str, str], name: str) -> str | None:
    """Without a query: what is asked of the payment page becomes one."""
    value = given.get(name)
    found = None if value is None else _PAYMENT_PAGE.fullmatch(value)
    if value is not None and (found is None or not _is_safe(found, given) or not _is_port(found[3] or "443")):
        accepted = "https:// with a host and perhaps a path, or http:// on this machine; no query or fragment"
        raise WrongSetting(name, value, accepted)
    return value


def _is_safe(page: re.Match[str], given: Mapping[str, str]) -> bool:
    """In plain http only where nobody is in between, or where buyers are on that host in http already."""
    host = page[2].lower()
    if page[1].lower() == "https" or _LOOPBACK_HOST.fullmatch(host):
        return True
    public = urlsplit(given.get("HOLDFAST_PUBLIC_URL", "").lower())
    return public.scheme == "http" and public.netloc.removesuffix(f":{public.port}") == host


def payment_secret(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name)
    if value is not None and (len(value) < _SHORTEST_SECRET or not value.isprintable()):
        # A secret must not end up in a log.
        raise WrongSetting(name, "…", f"at least {_SHORTEST_SECRET} printable characters")
    return value


def refuse_one_without_the_other(given: Mapping[str, str], one: str, other: str) -> None:
    for missing, there in ((one, other), (other, one)):
        if there in given and missing not in given:
            raise MissingSetting(missing, f"set together with {there}")


def time_zone(given: Mapping[str, str], name: str, default: str) -> str:
    """Looked up only where one is named: it takes a while."""
    value = given.get(name, default)
    if value != default and value not in available_timezones():
        raise WrongSetting(name, value, "the name of a time zone, such as Asia/Riyadh")
    return value


def origins(given: Mapping[str, str], name: str) -> tuple[str, ...]:
    """As browsers write them: in lower case, and without the port that the scheme stands for."""
    entries = [entry.strip() for entry in given.get(name, "").split(",") if entry.strip()]
    if not all(_is_origin(entry) and entry.isascii() for entry in entries):
        accepted = (
            "origins such as https://www.example.com, with commas between them (* does not stand for all)"
        )
        raise WrongSetting(name, given[name], accepted)
    return tuple(dict.fromkeys(_as_browsers_write(entry.lower()) for entry in entries))


def _as_browsers_write(origin: str) -> str:
    for scheme, port in (("http://", ":80"), ("https://", ":443")):
        if origin.startswith(scheme):
            return origin.removesuffix(port)
    return origin


def _is_origin(value: str) -> bool:
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        return False
    bare = parts.username is None and not (parts.path or parts.query or parts.fragment) and port != 0
    return (
        parts.scheme in ("http", "https") and bool(parts.hostname) and bare and not set(value) & set(" \\?#")
    )
