"""A project on a server and a database of its own, and all that buyers, staff and systems ask of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.domain.api_key import Scope
from tests.support.buying import BUYER
from tests.support.concurrent_requests import Answer, Line, Request, open_lines, salvo
from tests.support.keys import Keys
from tests.support.payment_system import CALLBACK, signed_headers
from tests.support.projects import add_project
from tests.support.server import RunningServer, serving
from tests.support.sql import Sql

FIELDS: dict[str, Any] = {
    "type": "apartment",
    "areaSqm": 120.5,
    "priceSar": 950_000,
    "vatIncluded": False,
    "vatRate": 15,
    "depositPercent": 5,
}
# Every caller of a test comes from one address.
NO_HOLD_LIMIT = {"HOLDFAST_HOLDS_PER_ADDRESS": "0", "HOLDFAST_HOLDS_SHARE_PER_NETWORK": "0"}


@dataclass(frozen=True)
class Market:
    address: str
    key: str
    """With every scope."""
    slug: str

    def put(self, code: str, **changes: Any) -> Request:
        return Request("PUT", self._unit("integration", code), self.key, {**FIELDS, **changes})

    def patch(self, code: str, **changes: Any) -> Request:
        return Request("PATCH", self._unit("integration", code), self.key, changes)

    def read(self, code: str) -> Request:
        return Request("GET", self._unit("integration", code), self.key)

    def hold(self, code: str, idempotency_key: str | None = None) -> Request:
        headers = () if idempotency_key is None else (("Idempotency-Key", idempotency_key),)
        return Request("POST", f"{self._unit('storefront', code)}/hold", headers=headers)

    def sign(self, held: Mapping[str, Any], buyer: Mapping[str, str] = BUYER) -> Request:
        """``held``: what the hold was answered with."""
        return Request("POST", f"{self._own(held)}/sign", held["token"], dict(buyer))

    def cancel(self, held: Mapping[str, Any]) -> Request:
        return Request("DELETE", self._own(held), held["token"])

    def look(self, held: Mapping[str, Any]) -> Request:
        return Request("GET", self._own(held), held["token"])

    def confirm_deposit(self, held: Mapping[str, Any]) -> Request:
        return self.staff_on_booking(held, "confirm-deposit")

    def pay(self, payment_id: str, held: Mapping[str, Any]) -> Request:
        """As the payment system tells it."""
        amount = held["unit"]["depositSar"]
        body = {"id": payment_id, "reference": held["reference"], "amountSar": amount}
        headers = signed_headers(json.dumps(body).encode())
        return Request("POST", CALLBACK, body=body, headers=tuple(headers.items()))

    def staff_on_booking(self, held: Mapping[str, Any], action: str) -> Request:
        return Request("POST", f"/v1/backoffice/bookings/{held['reference']}/{action}", self.key)

    def act(self, code: str, action: str, body: object = None) -> Request:
        return Request("POST", f"{self._unit('backoffice', code)}/{action}", self.key, body)

    def settle(self, **changes: Any) -> Request:
        return Request("PATCH", f"/v1/backoffice/projects/{self.slug}", self.key, changes)

    def _unit(self, surface: str, code: str) -> str:
        return f"/v1/{surface}/projects/{self.slug}/units/{code}"

    def _own(self, held: Mapping[str, Any]) -> str:
        return f"/v1/storefront/bookings/{held['reference']}"


@contextmanager
def open_market(
    folder: Path, database_url: str, *arguments: str, settings: Mapping[str, str] = NO_HOLD_LIMIT
) -> Iterator[tuple[Market, RunningServer]]:
    with serving(folder, {"HOLDFAST_DATABASE_URL": database_url, **settings}, *arguments) as server:
        yield new_market(server.address, database_url), server


def new_market(address: str, database_url: str) -> Market:
    with Sql(database_url) as sql:
        key = Keys(sql, database_url).issue(scopes=tuple(Scope))
        return Market(address, key.text, add_project(sql).slug)


async def stock_up(market: Market, codes: Sequence[str], **settings: Any) -> None:
    """Put these units on sale; ``settings`` are those of the project."""
    async with open_lines(market.address, 1) as (line,):
        if settings:
            expect(await line.ask(market.settle(**settings)), 200)
        for code in codes:
            expect(await line.ask(market.put(code)), 201)


def expect(answer: Answer, *statuses: int) -> Answer:
    assert answer.status in statuses, f"{answer.status}: {answer.content.decode()}"
    return answer


async def reach_web_processes(lines: Sequence[Line]) -> None:
    """Waits until each web process serves: the kernel shares connections out among them."""
    for answer in await salvo(lines, [Request("GET", "/healthz")] * len(lines)):
        expect(answer, 200)
