"""The socket, the addresses and the secrets of the demo's webhook receiver and payment page."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit

from holdfast.server.sockets import format_url, listen_beside


class ExternalSystems(NamedTuple):
    listener: socket.socket
    address: str
    """For people: beside the public address."""
    hook_url: str
    """For the workers, which are on this machine."""
    payment_secret: str
    """Empty: this is not the payment page, since the operator has named another, or it would not be safe."""

    @property
    def networks(self) -> tuple[str, ...]:
        """The address of the receiver, unless it is a loopback one."""
        own = ip_address(self.listener.getsockname()[0])
        return () if own.is_loopback or own.is_unspecified else (str(own).partition("%")[0],)

    def holdfast_settings(self) -> dict[str, str]:
        if not self.payment_secret:
            return {}
        return {"HOLDFAST_PAYMENT_URL": f"{self.address}/pay", "HOLDFAST_PAYMENT_SECRET": self.payment_secret}

    def settings(self, hook_secret: str, holdfast_url: str, time_zone: str) -> dict[str, str]:
        """Return the ExternalSettings of their process."""
        return {
            "hook_secret": hook_secret,
            "payment_secret": self.payment_secret,
            "holdfast_url": holdfast_url,
            "time_zone": time_zone,
        }


@contextmanager
def open_external_systems(
    host: str, port: int, public_url: str | None, environment: Mapping[str, str]
) -> Iterator[ExternalSystems]:
    """Bind their socket. ``environment`` is that of `serve`, in which a payment page may be named already."""
    with listen_beside(host, port) as listener:
        bound: str = listener.getsockname()[0]
        if ip_address(bound).is_unspecified:
            bound = "::1" if listener.family == socket.AF_INET6 else "127.0.0.1"
        public = urlsplit(public_url or "")
        # Buyers who come by https are not sent on to a page in plain http.
        has_payment_page = (
            public.scheme != "https" and not environment.get("HOLDFAST_PAYMENT_URL", "").strip()
        )
        yield ExternalSystems(
            listener,
            format_url(listener, public.hostname or host),
            f"{format_url(listener, bound)}/hook",
            secrets.token_urlsafe(32) if has_payment_page else "",
        )
