"""Database URLs: one that names several hosts becomes one URL for each of them."""

from itertools import zip_longest
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit


def split_hosts(database_url: str) -> list[str]:
    """URLs with one host each, in the order in which they were written.

    Hosts stand in the authority (``h1:5432,[::1]:5433``) or in ``?host=h1,/socket/dir&port=5432,5433``,
    as libpq reads them. A URL that names no host stays as it is.
    """
    parts = urlsplit(database_url)
    credentials, at, authority = parts.netloc.rpartition("@")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    hosts = _from_authority(authority) if authority else _from_query(query)
    if not hosts:
        return [database_url]
    kept = {name: value for name, value in query.items() if name not in ("host", "port")}
    ports = query.get("port", "").split(",")
    return [
        _with_one_host(parts.scheme, credentials + at, host, port or default, parts.path, kept)
        for (host, port), default in zip(hosts, _one_for_each(ports, len(hosts)), strict=True)
    ]


def _from_authority(authority: str) -> list[tuple[str, str]]:
    return [_host_and_port(spec) for spec in authority.split(",")]


def _from_query(query: dict[str, str]) -> list[tuple[str, str]]:
    return [_host_and_port(spec) for spec in query.get("host", "").split(",") if spec]


def _host_and_port(spec: str) -> tuple[str, str]:
    if spec.startswith("["):
        host, _, port = spec.partition("]")
        return host[1:], port.removeprefix(":")
    if spec.startswith("/"):
        return spec, ""
    host, _, port = spec.partition(":")
    return unquote(host), port


def _one_for_each(ports: list[str], count: int) -> list[str]:
    """A single port is meant for every host."""
    if len(ports) == 1:
        return ports * count
    return [port or "" for _, port in zip_longest(range(count), ports[:count])]


def _with_one_host(scheme: str, userinfo: str, host: str, port: str, path: str, query: dict[str, str]) -> str:
    if host.startswith("/"):
        asked = {**query, "host": host} | ({"port": port} if port else {})
        return _url(scheme, userinfo, path or "/", asked)
    shown = f"[{host}]" if ":" in host else host
    return _url(scheme, userinfo + shown + (f":{port}" if port else ""), path, query)


def _url(scheme: str, authority: str, path: str, query: dict[str, str]) -> str:
    """Not ``urlunsplit``: it drops the empty authority of a socket URL."""
    asked = "?" + urlencode(query, quote_via=quote, safe="/") if query else ""
    return f"{scheme}://{authority}{path}{asked}"
