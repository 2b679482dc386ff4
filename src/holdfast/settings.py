"""The settings of a process, read once from HOLDFAST_* at its start."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import parse_qsl, urlsplit

_HOST_AND_PORT = re.compile(r"^(\[[^\]]+\]|[^:\[\]]*)(:(.*))?$")


class WrongSetting(Exception):
    """A setting that cannot be used; the text is one sentence for the person who set it."""

    def __init__(self, name: str, given: str, accepted: str) -> None:
        super().__init__(f"{name} is {given!r}, but must be {accepted}.")


@dataclass(frozen=True, slots=True)
class Settings:
    database_url: str | None = None
    """None: the embedded PostgreSQL in the data directory."""
    data_dir: Path = Path("data")
    public_url: str | None = None
    """None: the address that `serve` is bound to."""
    rate_limit: float = 0.0
    """Requests per second and key over all processes; 0 is no limit."""
    event_retention_days: float = 400.0
    processes: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read what is set; an empty value counts as not set, names of no setting here are left alone."""
        given = {name: value.strip() for name, value in environ.items() if value.strip()}
        return cls(
            database_url=_database_url(given, "HOLDFAST_DATABASE_URL"),
            data_dir=_directory(given, "HOLDFAST_DATA_DIR", default="data"),
            public_url=_public_url(given, "HOLDFAST_PUBLIC_URL"),
            rate_limit=_number(given, "HOLDFAST_RATE_LIMIT", default=0.0, accepted="0 (off) or more"),
            event_retention_days=_days(given, "HOLDFAST_EVENT_RETENTION_DAYS", default=400.0),
            processes=_count(given, "HOLDFAST_PROCESSES", default=1),
        )


def _directory(given: Mapping[str, str], name: str, default: str) -> Path:
    value = given.get(name, default)
    if "\0" in value:
        raise WrongSetting(name, value, "the path of a directory")
    path = Path(value).expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise WrongSetting(name, value, "the path of a directory")
    return path


def _number(given: Mapping[str, str], name: str, default: float, accepted: str) -> float:
    value = given.get(name)
    if value is None:
        return default
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        raise WrongSetting(name, value, f"a number of {accepted}")
    return number


def _days(given: Mapping[str, str], name: str, default: float) -> float:
    number = _number(given, name, default, accepted="days over 0 and up to 36500")
    if not 0 < number <= 36_500:
        raise WrongSetting(name, given[name], "a number of days over 0 and up to 36500")
    return number


def _count(given: Mapping[str, str], name: str, default: int) -> int:
    value = given.get(name)
    if value is None:
        return default
    if not (value.isascii() and value.isdecimal() and 1 <= int(value) <= 1000):
        raise WrongSetting(name, value, "a whole number from 1 to 1000")
    return int(value)


def _database_url(given: Mapping[str, str], name: str) -> str | None:
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


def _public_url(given: Mapping[str, str], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not _is_origin(value):
        raise WrongSetting(name, value, "http:// or https:// with a host, and no path or trailing slash")
    return value


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
