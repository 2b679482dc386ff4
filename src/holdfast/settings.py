"""The settings of a process, read once from HOLDFAST_* at its start."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import available_timezones

from annotated_types import Predicate
from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from holdfast.domain.addresses import IPNetwork
from holdfast.domain.delivery import Schedule
from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS, HoldLimits, HoldPeriods
from holdfast.domain.permissions import Role

LOOPBACK: tuple[IPNetwork, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
SHORTEST_PAYMENT_SECRET = 16
DEFAULT_RUN_AS = "holdfast-web"

_PREFIX = "HOLDFAST_"
_READ_BY_COMMANDS = frozenset({"HOLDFAST_URL", "HOLDFAST_KEY", "HOLDFAST_SECRET"})
# Kubernetes sets these for a service named "holdfast".
_IGNORED = ("HOLDFAST_PORT", "HOLDFAST_SERVICE_")
_MISSPELT_WITHIN = 2

_CENTURY_DAYS = 36_500
_DAY_SECONDS = 86_400
_LONGEST_HOLD_DAYS = LONGEST_HOLD_SECONDS / _DAY_SECONDS
_YEAR_HOURS = 8_760
_MAX_HOLDS = 1_000_000
_PERIODS, _LIMITS, _SCHEDULE = HoldPeriods(), HoldLimits(), Schedule()

_MAPPED = IPv6Network("::ffff:0:0/96")
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]+\]|[^:\[\]]*)(?::(?P<port>.*))?")
# ASCII only: it becomes a part of a header, too. Without a query: Holdfast appends its own.
_PAYMENT_PAGE = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?"
    r"(?:/[A-Za-z0-9._~!$&'()*+,=:@%/-]*)?",
    re.IGNORECASE | re.ASCII,
)
_SMTP_URL = re.compile(r"smtps?://([^\s:@/?#]+:[^\s@/?#]+@)?([\w.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]+)?/?")
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_MAIL_ADDRESS = rf"{_ATOM}(?:\.{_ATOM})*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*"
_MAIL_SENDER = re.compile(rf"(?!.*=\?)(?:{_MAIL_ADDRESS}|[^<>@\",;:()\[\]\\]*<{_MAIL_ADDRESS}>)")
_LOOPBACK_HOST = re.compile(r"localhost|127(?:\.[0-9]{1,3}){3}|\[::1\]")
_ORIGIN = "http:// or https:// with a host, such as https://sales.example.com, and no path or trailing slash"
_NETWORKS = "IP addresses or networks such as 10.0.0.0/8, with commas between them"

_log = logging.getLogger(__name__)


class WrongSetting(Exception):
    """A setting that cannot be used; the text is one sentence for the person who set it."""


def parse_encryption_keys(text: str) -> tuple[str, ...]:
    return _check_encryption_keys(_split(text))


def check_setting_names(environ: Mapping[str, str]) -> None:
    """Raise WrongSetting for a name that is almost that of a setting; warn of other unknown names."""
    known = {_PREFIX + name.upper() for name in Settings.model_fields} | _READ_BY_COMMANDS
    names = {name for name, value in environ.items() if name.startswith(_PREFIX) and value.strip()}
    unknown = sorted(name for name in names - known if not name.startswith(_IGNORED))
    for name in unknown:
        distance, nearest = min((_edit_distance(name, other), other) for other in known)
        if distance <= _MISSPELT_WITHIN:
            raise WrongSetting(f"{name} is not a setting; did you mean {nearest}?")
    if unknown:
        _log.warning("ignoring unknown settings: %s", ", ".join(unknown))


def _edit_distance(name: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for letter in name:
        above, row = row, [row[0] + 1]
        for at, other_letter in enumerate(other):
            row.append(min(above[at + 1] + 1, row[at] + 1, above[at] + (letter != other_letter)))
    return row[-1]


def _check(is_valid: bool) -> None:
    """Raise ValueError without a text: the sentence about a value has the description of its field."""
    if not is_valid:
        raise ValueError


def _split(value: Any) -> Any:
    """Split the text of a variable at its commas; leave everything else alone."""
    if not isinstance(value, str):
        return value
    return tuple(entry.strip() for entry in value.split(",") if entry.strip())


def _check_whole_number(value: Any) -> Any:
    """Reject text that pydantic would accept for an integer, such as 8.0 and 1_000."""
    _check(not isinstance(value, str) or (value.isascii() and value.isdecimal()))
    return value


def _unmap(network: IPNetwork) -> IPNetwork:
    """IPv4 clients are known by their IPv4 address, even if they connect to an IPv6 socket."""
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        return IPv4Network((int(network.network_address) & 0xFFFFFFFF, network.prefixlen - 96))
    return network


def _check_directory(path: Path) -> Path:
    _check("\0" not in str(path))
    path = path.expanduser().absolute()
    with suppress(PermissionError):  # a process that has another user than its supervisor does not use it
        _check(path.is_dir() or not path.exists())
    return path


def _check_database_url(url: str) -> str:
    parts = urlsplit(url)
    hosts = [_HOST_AND_PORT.fullmatch(host) for host in parts.netloc.rpartition("@")[2].split(",")]
    ports = dict(parse_qsl(parts.query)).get("port", "5432").split(",")
    _check(parts.scheme in ("postgresql", "postgres") and "://" in url and all(map(_is_port, ports)))
    _check(all(host and (host["port"] is None or _is_port(host["port"])) for host in hosts))
    return url


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 5 and 0 < int(text) < 65536


def _check_origin(url: str) -> str:
    parts = urlsplit(url)
    _check(parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None)
    _check(not (parts.path or parts.query or parts.fragment or parts.port == 0 or set(url) & set(" \\?#")))
    return url


def _parse_browser_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    """Write origins as browsers do: in lower case, and without the default port of their scheme."""
    _check(all(_check_origin(origin).isascii() for origin in origins))
    lowered = [origin.lower() for origin in origins]
    ports = [":80" if origin.startswith("http:") else ":443" for origin in lowered]
    return tuple(dict.fromkeys(map(str.removesuffix, lowered, ports)))


def _check_payment_url(url: str, info: ValidationInfo) -> str:
    """Accept plain http on this machine, and on the host on which buyers already use plain http."""
    page = _PAYMENT_PAGE.fullmatch(url)
    _check(page is not None and _is_port(page["port"] or "443"))
    assert page is not None
    host, public = page["host"].lower(), urlsplit((info.data.get("public_url") or "").lower())
    is_public_host = public.scheme == "http" and public.netloc.removesuffix(f":{public.port}") == host
    _check(page["scheme"].lower() == "https" or bool(_LOOPBACK_HOST.fullmatch(host)) or is_public_host)
    return url


def _check_encryption_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    for key in keys:
        _check(len(base64.b64decode(key.encode(), altchars=b"-_", validate=True)) == 32)
    return keys


def _duration(default: float | None, most: float, unit: str, least: float | None = None) -> Any:
    accepted = f"over 0 and up to {most:g}" if least is None else f"from {least:g} to {most:g}"
    return Field(default, gt=0, ge=least, le=most, description=f"a number of {unit} {accepted}")


def _count(default: int, least: int, most: int) -> Any:
    accepted = f"a whole number from {least or '0 (off)'} to {most}"
    return Field(default, ge=least, le=most, description=accepted)


def _rate(default: float) -> Any:
    return Field(default, ge=0, description="a number of 0 (off) or more")


_Number = Annotated[float, Field(allow_inf_nan=False)]
_Count = Annotated[int, BeforeValidator(_check_whole_number)]
_Origin = Annotated[str, AfterValidator(_check_origin)]
_Secret = Annotated[str, Field(min_length=SHORTEST_PAYMENT_SECRET), Predicate(str.isprintable)]
_SmtpUrl = Annotated[str, Predicate(lambda url: bool(_SMTP_URL.fullmatch(url)) and urlsplit(url).port != 0)]
_Sender = Annotated[str, Predicate(lambda text: bool(_MAIL_SENDER.fullmatch(text)) and text.isprintable())]
_TimeZone = Annotated[str, Predicate(lambda name: name in available_timezones())]
_List = Annotated[tuple[str, ...], BeforeValidator(_split)]
_Roles = Annotated[tuple[Role, ...], BeforeValidator(_split)]
_Networks = Annotated[
    tuple[Annotated[IPv4Network | IPv6Network, AfterValidator(_unmap)], ...], BeforeValidator(_split)
]


class Settings(BaseSettings):
    """Each field is read from the variable of its name; its description says what the value must be."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX, enable_decoding=False, frozen=True, hide_input_in_errors=True
    )

    database_url: Annotated[str, AfterValidator(_check_database_url)] | None = Field(
        None,
        description="postgresql://USER:PASSWORD@HOST[:PORT][,HOST[:PORT]]/DATABASE,"
        " such as postgresql://holdfast:secret@db.example.com/holdfast",
    )
    """None: the embedded PostgreSQL in the data directory."""
    data_dir: Annotated[Path, AfterValidator(_check_directory)] = Field(
        Path("data"), validate_default=True, description="the path of a directory"
    )
    public_url: _Origin | None = Field(None, description=_ORIGIN)
    """None: the address that `serve` is bound to."""
    trusted_proxies: _Networks = Field((), description=_NETWORKS)
    """Their X-Forwarded-For is believed."""
    cors_origins: Annotated[_List, AfterValidator(_parse_browser_origins)] = Field(
        (),
        description="origins such as https://www.example.com, with commas between them"
        " (* does not stand for all)",
    )
    hsts_subdomains: bool = Field(False, description="true or false")
    """Whether browsers keep to https on the subdomains of an https ``public_url``, too."""
    metrics_token: Annotated[str, Field(pattern=r"^[A-Za-z0-9._~+/=-]{16,}$")] | None = Field(
        None, repr=False, description="at least 16 of the characters A-Z a-z 0-9 - . _ ~ + / ="
    )
    """What `/metrics` is read with; None: nothing is needed."""
    metrics_port: _Count | None = Field(None, ge=1, le=65535, description="a port from 1 to 65535")
    """Of this machine alone: `serve` has `/metrics` there, and not on its public port."""
    hold_seconds: _Number = _duration(_PERIODS.hold_seconds, LONGEST_HOLD_SECONDS, "seconds")
    reservation_days: _Number = _duration(_PERIODS.reservation_days, LONGEST_RESERVATION_DAYS, "days")
    holds_per_visitor: _Count = _count(_LIMITS.per_visitor, 0, _MAX_HOLDS)
    """Live at the same time; 0 is no limit. The same goes for addresses."""
    holds_per_address: _Count = _count(_LIMITS.per_address, 0, _MAX_HOLDS)
    """An IPv6 /56 has twice and a /48 four times as many as an address, which is a /64."""
    holds_share_per_network: _Count = _count(_LIMITS.share_percent, 0, 100)
    """Percent of a project's available and held units, for an IPv4 /24 or an IPv6 /48; 0 is no limit."""
    rehold_seconds: _Number = Field(
        _LIMITS.rehold_seconds,
        ge=0,
        le=LONGEST_HOLD_SECONDS,
        description=f"a number of seconds from 0 (off) to {LONGEST_HOLD_SECONDS:g}",
    )
    """A visitor whose hold lapsed waits this long for the same unit; 0 is not at all."""
    rate_limit: _Number = _rate(0.0)
    """Requests per second and key over all processes; 0 is no limit."""
    public_rate_limit: _Number = _rate(50.0)
    """Requests without a key or session per second and address over all processes; 0 is no limit."""
    wrong_keys_per_minute: _Count = _count(20, 0, 1000)
    """From one address to one web process; 0 is no limit. A valid key is always served."""
    connections_per_address: _Count = _count(1000, 0, _MAX_HOLDS)
    """Open at a time to one web process; 0 is no limit. This machine and trusted proxies have none."""
    event_retention_days: _Number = _duration(400.0, _CENTURY_DAYS, "days")
    lapsed_hold_retention_days: _Number | None = _duration(None, _CENTURY_DAYS, "days", _LONGEST_HOLD_DAYS)
    """Of bookings without a deposit; None is for ever. At least as long as the longest wait to hold again."""
    audit_retention_days: _Number | None = _duration(None, _CENTURY_DAYS, "days")
    retry_first_gap_seconds: _Number = _duration(_SCHEDULE.first_gap_seconds, _DAY_SECONDS, "seconds")
    """After the first attempt of a delivery; each further gap is twice the one before."""
    attempts: _Count = _count(_SCHEDULE.attempts, 1, 30)
    attempt_timeout_seconds: _Number = _duration(10.0, 60, "seconds")
    lease_seconds: _Number | None = _duration(None, 600, "seconds")
    """For how long a worker may keep a delivery; None is 25 s more than an attempt may last."""
    delivery_retention_days: _Number = _duration(90.0, _CENTURY_DAYS, "days")
    allowed_networks: _Networks = Field((), description=_NETWORKS)
    """Networks of endpoints besides the public internet. There they may use http."""
    encryption_keys: Annotated[_List, AfterValidator(_check_encryption_keys)] = Field(
        (), repr=False, description="keys of 32 bytes in URL-safe base64, with commas between them"
    )
    """The first seals secrets, each opens them."""
    payment_url: Annotated[str, AfterValidator(_check_payment_url)] | None = Field(
        None,
        description="https:// with a host and perhaps a path, such as https://pay.example.com/deposit, or http://"
        " on this machine; no query or fragment",
    )
    """The page on which buyers pay their deposit; None: staff tell them how to."""
    payment_secret: _Secret | None = Field(
        None, repr=False, description=f"at least {SHORTEST_PAYMENT_SECRET} printable characters"
    )
    """Shared with the payment page: signs what each tells the other."""
    smtp_url: _SmtpUrl | None = Field(
        None,
        repr=False,
        description="smtp:// or smtps:// with a host, and perhaps USER:PASSWORD@ before it and a port"
        " after it, such as smtps://holdfast:secret@mail.example.com",
    )
    """The server that takes e-mail to buyers; None: they get none."""
    mail_from: _Sender | None = Field(
        None, description="an e-mail address, perhaps with a name, such as Narjis Heights <sales@example.com>"
    )
    """The sender of that e-mail."""
    session_idle_minutes: _Number = _duration(120.0, _YEAR_HOURS * 60, "minutes")
    """After so long without a click, staff sign in anew."""
    session_hours: _Number = _duration(12.0, _YEAR_HOURS, "hours")
    """After so long they do in any case."""
    second_factor_roles: _Roles = Field((), description=f"roles with commas between them: {', '.join(Role)}")
    """Their staff can do nothing in the back office before they have set up a second factor."""
    time_zone: _TimeZone = Field("Asia/Riyadh", description="the name of a time zone, such as Asia/Riyadh")
    demo_receiver: _Origin | None = Field(None, description=_ORIGIN)
    """Set by `serve --demo`: the address of its receiver. The first page then shows what there is to try."""
    processes: _Count = _count(1, 1, 1000)
    run_as: str = Field(DEFAULT_RUN_AS, description="the name of a system user")
    """The user of the web processes and the worker of a `serve` that root starts."""

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read what is set; an empty value counts as not set, other names are left alone."""
        values = {name: value.strip() for name, value in environ.items() if value.strip()}
        source = EnvSettingsSource(cls)
        source.env_vars = {name.lower(): value for name, value in values.items() if name.isupper()}
        try:
            return cls(**source())
        except ValidationError as error:
            raise WrongSetting(_explain(str(error.errors()[0]["loc"][0]), values)) from None

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """``Settings(...)`` takes its arguments only; the environment is read by ``from_environment``."""
        return (init_settings,)

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        pairs = ("payment_url", "payment_secret"), ("smtp_url", "mail_from")
        for missing, present in (*pairs, *(pair[::-1] for pair in pairs)):
            if getattr(self, missing) is None and getattr(self, present) is not None:
                raise WrongSetting(
                    f"{_PREFIX}{missing.upper()} is not set, but must be set together with"
                    f" {_PREFIX}{present.upper()}."
                )
        least = self.attempt_timeout_seconds + 1
        if self.lease_seconds is not None and self.lease_seconds < least:
            # Otherwise another worker would send what is still on its way.
            raise WrongSetting(
                f"HOLDFAST_LEASE_SECONDS is '{self.lease_seconds:g}', but must be at least {least:g}:"
                " a second more than an attempt."
            )
        return self


def _explain(field_name: str, environ: Mapping[str, str]) -> str:
    """Say what is wrong with a value, without repeating a secret or a password: it would end up in a log."""
    name, field = _PREFIX + field_name.upper(), Settings.model_fields[field_name]
    value = environ.get(name, str(field.default)) if field.repr else "…"
    if field_name == "database_url":
        value = re.sub(r"(//[^:/@]*):.*@", r"\1:…@", value)
    return f"{name} is {value!r}, but must be {field.description}."
