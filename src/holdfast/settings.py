"""The settings of a process, read once from HOLDFAST_* at its start."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from holdfast import setting_values as values
from holdfast.domain.periods import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS
from holdfast.setting_values import IPNetwork, WrongSetting

__all__ = ["Settings", "WrongSetting"]

_CENTURY_DAYS = 36_500
_MANY_HOLDS = 1_000_000
_MANY_PROCESSES = 1000


@dataclass(frozen=True, slots=True)
class Settings:
    database_url: str | None = None
    """None: the embedded PostgreSQL in the data directory."""
    data_dir: Path = Path("data")
    public_url: str | None = None
    """None: the address that `serve` is bound to."""
    trusted_proxies: tuple[IPNetwork, ...] = ()
    """Whose word is taken for where a request comes from."""
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
    processes: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read what is set; an empty value counts as not set, names of no setting here are left alone."""
        given = {name: value.strip() for name, value in environ.items() if value.strip()}
        return cls(
            database_url=values.database_url(given, "HOLDFAST_DATABASE_URL"),
            data_dir=values.directory(given, "HOLDFAST_DATA_DIR", "data"),
            public_url=values.public_url(given, "HOLDFAST_PUBLIC_URL"),
            trusted_proxies=values.networks(given, "HOLDFAST_TRUSTED_PROXIES"),
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
            processes=values.count(given, "HOLDFAST_PROCESSES", 1, 1, _MANY_PROCESSES),
        )
