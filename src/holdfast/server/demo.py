"""Where the demo's world outside is: its socket, its addresses, and the secrets it shares with Holdfast."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.server.sockets import address_of, listen_beside

# What its process is told. Nothing else of ours: it has no business with the database.
HOOK_SECRET = "DEMO_HOOK_SECRET"  # noqa: S105 - the name of a variable
PAYMENT_SECRET = "DEMO_PAYMENT_SECRET"  # noqa: S105
HOLDFAST_URL = "DEMO_HOLDFAST_URL"
TIME_ZONE = "DEMO_TIME_ZONE"

_OURS = "HOLDFAST_"
_PAYMENT_URL_SETTING = "HOLDFAST_PAYMENT_URL"
_PAYMENT_SECRET_SETTING = "HOLDFAST_PAYMENT_SECRET"  # noqa: S105


class DemoWorld(NamedTuple):
    listener: socket.socket
    address: str
    """For people: beside the public address."""
    hook: str
    """For the workers, which are on this machine."""
    payment_secret: str
    """Empty: this is not the payment page, since the operator has named another, or it would not be safe."""

    @property
    def own_networks(self) -> tuple[str, ...]:
        """The address that is listened on, where that is no loopback one: the receiver is there alone."""
        own = ip_address(self.listener.getsockname()[0])
        return () if own.is_loopback or own.is_unspecified else (str(own).partition("%")[0],)

    def settings(self) -> dict[str, str]:
        """For Holdfast's processes."""
        if not self.payment_secret:
            return {}
        return {
            _PAYMENT_URL_SETTING: f"{self.address}/pay",
            _PAYMENT_SECRET_SETTING: self.payment_secret,
        }

    def environment(
        self, given: Mapping[str, str], hook_secret: str, holdfast_url: str, time_zone: str
    ) -> dict[str, str]:
        """For its own process."""
        return {
            **{name: value for name, value in given.items() if not name.startswith(_OURS)},
            HOOK_SECRET: hook_secret,
            PAYMENT_SECRET: self.payment_secret,
            HOLDFAST_URL: holdfast_url,
            TIME_ZONE: time_zone,
        }


@contextmanager
def demo_world(host: str, port: int, public_url: str | None, given: Mapping[str, str]) -> Iterator[DemoWorld]:
    """``given``: the environment of `serve`, in which a payment page may be named already."""
    with listen_beside(host, port) as listener:
        shown = host if public_url is None else urlsplit(public_url).hostname or host
        hook = f"{address_of(listener, _reached_at(listener))}/hook"
        yield DemoWorld(listener, address_of(listener, shown), hook, _payment_secret(given, public_url))


def _reached_at(listener: socket.socket) -> str:
    own: str = listener.getsockname()[0]
    if not ip_address(own).is_unspecified:
        return own
    return "::1" if listener.family == socket.AF_INET6 else "127.0.0.1"


def _payment_secret(given: Mapping[str, str], public_url: str | None) -> str:
    """None where buyers come by https: they are not led on to a page in plain http."""
    is_elsewhere = given.get(_PAYMENT_URL_SETTING, "").strip()
    is_encrypted = public_url is not None and public_url.lower().startswith("https:")
    return "" if is_elsewhere or is_encrypted else secrets.token_urlsafe(32)
