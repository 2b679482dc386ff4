"""The settings of a process, read once from HOLDFAST_* at its start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_network
from pathlib import Path
from typing import Self

from holdfast import setting_values as values
from holdfast.domain.periods import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS
from holdfast.setting_values import IPNetwork, WrongSetting

__all__ = ["Settings", "WrongSetting"]

LOOPBACK: tuple[IPNetwork, ...] = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
"""What the demo allows."""

_CENTURY_DAYS = 36_500
_MANY_HOLDS = 1_000_000
_MANY_PROCESSES = 1000
_MANY_ATTEMPTS = 30
_DAY_SECONDS = 86_400
_YEAR_MINUTES = 525_600
_LONGEST_ATTEMPT_SECONDS = 60
_LONGEST_LEASE_SECONDS = 600


@dataclass(frozen=True, slots=True)
class Settings:
    database_url: str | None = None
    """None: the embedded PostgreSQL in the data directory."""
    data_dir: Path = Path("data")
    public_url: str | None = None
    """None: the address that `serve` is bound to."""
    trusted_proxies: tuple[IPNetwork, ...] = ()
    """Whose word is taken for where a request comes from."""
    cors_origins: tuple[str, ...] = ()
    """Of the sites whose pages may call the API from a browser."""
    hold_seconds: float = 300.0
    reservation_days: float = 14.0
    holds_per_visitor: int = 3
    """Live at the same time; 0 is no limit. So is it with addresses."""
    holds_per_address: int = 20
    rehold_seconds: float = 60.0
    """How long a visitor whose hold lapsed waits for the same unit; 0 is not at all."""
    rate_limit: float = 0.0
    """Requests per second and key over all processes; 0 is no limit."""
    public_rate_limit: float = 50.0
    """Requests to the storefront per second and address over all processes; 0 is no limit."""
    event_retention_days: float = 400.0
    retry_first_gap_seconds: float = 30.0
    """After the first attempt of a delivery; each further gap is twice the one before."""
    attempts: int = 8
    attempt_timeout_seconds: float = 10.0
    lease_seconds: float | None = None
    """For how long a worker may keep a delivery; None is 25 s more than an attempt may last."""
    delivery_retention_days: float = 90.0
    allowed_networks: tuple[IPNetwork, ...] = ()
    """Where endpoints may be though the public internet is elsewhere; http is fine there, too."""
    encryption_keys: tuple[str, ...] = field(default=(), repr=False)
    """The first seals secrets, each opens them."""
    payment_url: str | None = None
    """Where buyers pay their deposit; None: they are told by staff how to."""
    payment_secret: str | None = field(default=None, repr=False)
    """Shared with the payment page: signs what each tells the other."""
    session_idle_minutes: float = 120.0
    """After so long without a click, staff sign in anew."""
    session_hours: float = 12.0
    """After so long they do in any case."""
    time_zone: str = "Asia/Riyadh"
    """In which pages tell the time."""
    demo_receiver: str | None = None
    """Where `serve --demo` shows its webhooks; then the first page shows what there is to try."""
    processes: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read what is set; an empty value counts as not set, names of no setting here are left alone."""
        given = {name: value.strip() for name, value in environ.items() if value.strip()}
        values.refuse_one_without_the_other(given, "HOLDFAST_PAYMENT_URL", "HOLDFAST_PAYMENT_SECRET")
        return cls(
            database_url=values.database_url(given, "HOLDFAST_DATABASE_URL"),
            data_dir=values.directory(given, "HOLDFAST_DATA_DIR", "data"),
            public_url=values.public_url(given, "HOLDFAST_PUBLIC_URL"),
            trusted_proxies=values.networks(given, "HOLDFAST_TRUSTED_PROXIES"),
            cors_origins=values.origins(given, "HOLDFAST_CORS_ORIGINS"),
            hold_seconds=values.duration(
                given, "HOLDFAST_HOLD_SECONDS", 300.0, LONGEST_HOLD_SECONDS, "seconds"
            ),
            reservation_days=values.duration(
                given, "HOLDFAST_RESERVATION_DAYS", 14.0, LONGEST_RESERVATION_DAYS, "days"
            ),
            holds_per_visitor=values.count(given, "HOLDFAST_HOLDS_PER_VISITOR", 3, 0, _MANY_HOLDS),
            holds_per_address=values.count(given, "HOLDFAST_HOLDS_PER_ADDRESS", 20, 0, _MANY_HOLDS),
            rehold_seconds=values.gap(given, "HOLDFAST_REHOLD_SECONDS", 60.0, LONGEST_HOLD_SECONDS),
            rate_limit=values.rate(given, "HOLDFAST_RATE_LIMIT", 0.0),
            public_rate_limit=values.rate(given, "HOLDFAST_PUBLIC_RATE_LIMIT", 50.0),
            event_retention_days=values.duration(
                given, "HOLDFAST_EVENT_RETENTION_DAYS", 400.0, _CENTURY_DAYS, "days"
            ),
            retry_first_gap_seconds=values.duration(
                given, "HOLDFAST_RETRY_FIRST_GAP_SECONDS", 30.0, _DAY_SECONDS, "seconds"
            ),
            attempts=values.count(given, "HOLDFAST_ATTEMPTS", 8, 1, _MANY_ATTEMPTS),
            attempt_timeout_seconds=values.duration(
                given, "HOLDFAST_ATTEMPT_TIMEOUT_SECONDS", 10.0, _LONGEST_ATTEMPT_SECONDS, "seconds"
            ),
            lease_seconds=_lease(given),
            delivery_retention_days=values.duration(
                given, "HOLDFAST_DELIVERY_RETENTION_DAYS", 90.0, _CENTURY_DAYS, "days"
            ),
            allowed_networks=values.networks(given, "HOLDFAST_ALLOWED_NETWORKS"),
            encryption_keys=values.encryption_keys(given, "HOLDFAST_ENCRYPTION_KEYS"),
            payment_url=values.payment_url(given, "HOLDFAST_PAYMENT_URL"),
            payment_secret=values.payment_secret(given, "HOLDFAST_PAYMENT_SECRET"),
            session_idle_minutes=values.duration(
                given, "HOLDFAST_SESSION_IDLE_MINUTES", 120.0, _YEAR_MINUTES, "minutes"
            ),
            session_hours=values.duration(given, "HOLDFAST_SESSION_HOURS", 12.0, _YEAR_MINUTES / 60, "hours"),
            time_zone=values.time_zone(given, "HOLDFAST_TIME_ZONE", "Asia/Riyadh"),
            demo_receiver=values.public_url(given, "HOLDFAST_DEMO_RECEIVER"),
            processes=values.count(given, "HOLDFAST_PROCESSES", 1, 1, _MANY_PROCESSES),
        )


def _lease(given: Mapping[str, str]) -> float | None:
    """Longer than an attempt: otherwise what is on its way would be sent twice."""
    name = "HOLDFAST_LEASE_SECONDS"
    if name not in given:
        return None
    seconds = values.duration(given, name, 0.0, _LONGEST_LEASE_SECONDS, "seconds")
    timeout = values.duration(
        given, "HOLDFAST_ATTEMPT_TIMEOUT_SECONDS", 10.0, _LONGEST_ATTEMPT_SECONDS, "seconds"
    )
    if seconds < timeout + 1:
        raise WrongSetting(name, given[name], f"at least {timeout + 1:g}: a second more than an attempt")
    return seconds
