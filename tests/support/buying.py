"""A small client of the storefront: a buyer holds a unit, reads the booking, signs, cancels."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import httpx

from tests.support import exact_json
from tests.support.client import JSON, Project, Unit, succeeded
from tests.support.sql import Sql
from tests.support.unit_history import time_text
from tests.support.unit_rows import end_now

BUYER = {"buyerName": "Nora Al-Harbi", "buyerEmail": "nora@example.com", "buyerPhone": "+966 50 123 4567"}
ANOTHER_BUYER = {"buyerName": "Omar Haddad", "buyerEmail": "omar@example.com", "buyerPhone": "0501112223"}


def offers_url(project: Project) -> str:
    return project.units_url.replace("/integration/", "/storefront/", 1)


def offer_url(unit: Unit) -> str:
    return unit.url.replace("/integration/", "/storefront/", 1)


def booking_url(reference: str) -> str:
    return f"/v1/storefront/bookings/{reference}"


@dataclass(frozen=True)
class Buyer:
    """Somebody at the storefront, known by nothing but what the headers tell."""

    http: httpx.Client
    headers: Mapping[str, str] = field(default_factory=dict)

    def send(
        self,
        method: str,
        url: str,
        *,
        token: str | None = None,
        content: str | bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Without the key that the client may have: buyers have none."""
        sent = {**self.headers, **(headers or {})}
        request = self.http.build_request(method, url, content=content, headers=sent)
        request.headers.pop("Authorization", None)
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        return self.http.send(request)

    def ask(
        self, unit: Unit, *, token: str | None = None, content: str | bytes | None = None, **headers: str
    ) -> httpx.Response:
        """The request for a hold, whatever comes of it."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        url = f"{offer_url(unit)}/hold"
        return self.send("POST", url, token=token, content=content, headers=named)

    def hold(self, unit: Unit, **headers: str) -> "Hold":
        response = self.ask(unit, **headers)
        assert response.status_code == 201, response.text
        return hold_in(response, self, unit)

    def see(self, unit: Unit) -> dict[str, Any]:
        """The unit on the storefront."""
        return succeeded(self.send("GET", offer_url(unit)))


@dataclass(frozen=True)
class Hold:
    """A buyer's way to a booking, whatever has become of it."""

    buyer: Buyer
    unit: Unit
    reference: str
    token: str
    expires_at: str = ""

    @property
    def url(self) -> str:
        return booking_url(self.reference)

    @property
    def ends(self) -> datetime:
        return datetime.fromisoformat(self.expires_at)

    def get(self) -> httpx.Response:
        return self.buyer.send("GET", self.url, token=self.token)

    def read(self) -> dict[str, Any]:
        return succeeded(self.get())

    def try_to_sign(self, **changes: object) -> httpx.Response:
        return self.send_signature({**BUYER, **changes})

    def send_signature(self, body: object) -> httpx.Response:
        headers, content = {"Content-Type": JSON}, exact_json.write(body)
        url = f"{self.url}/sign"
        return self.buyer.send("POST", url, token=self.token, content=content, headers=headers)

    def sign(self, **changes: object) -> dict[str, Any]:
        return succeeded(self.try_to_sign(**changes))

    def cancel(self) -> httpx.Response:
        return self.buyer.send("DELETE", self.url, token=self.token)

    def end_now(self, sql: Sql) -> "Hold":
        """As `unit_rows.end_now` does; with its new end."""
        return replace(self, expires_at=time_text(end_now(sql, self.reference)))


def hold_in(response: httpx.Response, buyer: Buyer, unit: Unit) -> Hold:
    body = response.json()
    return Hold(buyer, unit, body["reference"], body["token"], body["holdExpiresAt"])
