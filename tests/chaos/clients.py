"""Buyers, ERPs, staff and readers of the feed, who use both servers during a chaos run."""

from __future__ import annotations

import asyncio
import itertools
import json
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from holdfast.domain.api_key import Scope
from holdfast.operations import api_keys
from holdfast.storage.database import Database
from tests.chaos.calls import PACE, Caller, Journal, Reply
from tests.chaos.history import History
from tests.support.buying import BUYER
from tests.support.concurrent_requests import Request, open_line
from tests.support.payment_system import SETTINGS as PAYMENTS
from tests.support.sales_project import FIELDS, NO_HOLD_LIMIT, Market, expect

PROJECT = "chaos"
IMPORTS = "chaos-imports"
"""A project of which only faults write."""
ERPS, UNITS_EACH, BUYERS, STAFF = 4, 6, 8, 2
SETTINGS = {
    **NO_HOLD_LIMIT,
    **PAYMENTS,
    "HOLDFAST_HOLDS_PER_VISITOR": "0",
    "HOLDFAST_REHOLD_SECONDS": "0",
    "HOLDFAST_PUBLIC_RATE_LIMIT": "0",
    "HOLDFAST_WRONG_KEYS_PER_MINUTE": "0",
}
"""Of Holdfast: all clients come from one address."""
PAGE_SIZE = 200
POLL_PACE = (0.2, 0.4)
READ_TO_THE_END_SECONDS = 60.0
PRICES = (900_000, 950_000, 1_000_000)
STAFF_PACE = (0.02, 0.1)
WAITING = 100
"""Of more bookings staff forget the oldest, until they meet the unit while they look at all of them."""

Held = Mapping[str, Any]
"""The answer to a hold."""


def codes_of(erp: int) -> list[str]:
    return [f"{'ABCD'[erp]}-{101 + number}" for number in range(UNITS_EACH)]


CODES = [code for erp in range(ERPS) for code in codes_of(erp)]


@dataclass
class Description:
    """The descriptions of a unit that its only writer may read.

    The one that was acknowledged or read last, and those of writes with unknown outcome: such a write may
    take effect at any later time, for example when a server that was stopped goes on.
    """

    last: str | None = None
    unsettled: set[str | None] = field(default_factory=set)

    def is_possible(self, text: str | None) -> bool:
        return text == self.last or text in self.unsettled


class Client(ABC):
    def __init__(self, caller: Caller, market: Market) -> None:
        self.caller = caller
        self.chance = caller.chance
        self.market = market

    async def run(self) -> None:
        try:
            while not self.caller.is_over:
                await self.take_turn()
        finally:
            self.caller.close()

    @abstractmethod
    async def take_turn(self) -> None: ...

    def draw(self, turns: Mapping[str, int]) -> str:
        """One of these, by its weight."""
        (chosen,) = self.chance.choices(list(turns), list(turns.values()))
        return chosen


class Erp(Client):
    """The only writer of the fields of its units. Their status has other writers."""

    TURNS: Mapping[str, int] = {
        "put": 26, "patch": 24, "patch_price": 6, "patch_if_match": 12, "put_bulk": 6, "set_status": 9,
        "read": 17,
    }  # fmt: skip

    def __init__(self, caller: Caller, market: Market, codes: list[str]) -> None:
        super().__init__(caller, market)
        self._codes = codes
        self._descriptions = {code: Description() for code in codes}
        self._etags: dict[str, str] = {}
        self._texts = itertools.count()

    async def create_units(self) -> None:
        for code in self._codes:
            reply = await self._insist("put", self.market.put(code, description=None), code)
            if not reply.is_ok:
                raise RuntimeError(f"{code} was not created: {reply.document}")

    async def take_turn(self) -> None:
        await getattr(self, f"_{self.draw(self.TURNS)}")(self.chance.choice(self._codes))

    async def _put(self, code: str) -> None:
        """Two in five are sent once more, which changes nothing.

        As long as an earlier write has an unknown outcome, it is sent on condition that nothing has changed.
        """
        fields = {"description": self._text(), "priceSar": self._price()}
        request = self.market.put(code, **fields)
        reply = await self._insist("put", request, code)
        if reply.is_ok and self.chance.random() < 0.4:
            if self._descriptions[code].unsettled:
                request = request._replace(headers=(("If-Match", self._etags[code]),))
            again = await self.caller.call("put", request, code, repeats=reply.first)
            self._take_in(code, again, request)

    async def _patch(self, code: str) -> None:
        request = self.market.patch(code, description=self._text())
        if self.chance.random() < 0.5:
            await self._insist("patch", request, code)
        else:
            self._take_in(code, await self.caller.call("patch", request, code), request)

    async def _patch_price(self, code: str) -> None:
        await self._insist("patch", self.market.patch(code, priceSar=self._price()), code)

    async def _patch_if_match(self, code: str) -> None:
        """It is not repeated: had the first one succeeded, the second would be refused."""
        request = self.market.patch(code, description=self._text())
        request = request._replace(headers=(("If-Match", self._etags.get(code, "*")),))
        self._take_in(code, await self.caller.call("patch", request, code), request)

    async def _put_bulk(self, _: str) -> None:
        """All own units at once. Those whose price would change while a buyer has them are refused."""
        units = [{"code": code, **FIELDS, "description": self._text()} for code in self._codes]
        path = f"/v1/integration/projects/{self.market.slug}/units"
        request = Request("PUT", path, self.market.key, units)
        if self.chance.random() < 0.5:
            lines = "".join(f"{json.dumps(unit)}\n" for unit in units).encode()
            types = (("Content-Type", "application/x-ndjson"),)
            request = request._replace(body=lines, headers=types)
        reply = await self.caller.insist("put-bulk", lambda: request, body=units)
        self._take_in_bulk(units, reply)

    async def _set_status(self, code: str) -> None:
        status = self.draw({"available": 2, "unavailable": 1})
        request = self.market.patch(code, status=status)
        self._take_in(code, await self.caller.call("set-status", request, code), request)

    async def _read(self, code: str) -> None:
        request = self.market.read(code)
        elsewhere = self.chance.random() < 0.5
        self._take_in(code, await self.caller.call("read", request, code, elsewhere=elsewhere), request)

    async def _insist(self, op: str, request: Request, code: str) -> Reply:
        reply = await self.caller.insist(op, lambda: request, code)
        self._take_in(code, reply, request)
        return reply

    def _take_in(self, code: str, reply: Reply, request: Request) -> None:
        sent = request.body if isinstance(request.body, dict) else {}
        known, is_written = self._descriptions[code], "description" in sent
        if is_written and (reply.answer is None or reply.first not in ("", reply.call)):
            known.unsettled.add(sent["description"])
        if reply.answer is None or not reply.is_ok:
            return
        self._etags[code] = reply.answer.headers["etag"]
        found = reply.document["description"]
        if found != sent["description"] if is_written else not known.is_possible(found):
            self.caller.journal.history.note(
                "stale",
                call=reply.call,
                unit=code,
                read=found,
                acknowledged=sent.get("description", known.last),
            )
        known.last = found

    def _take_in_bulk(self, units: list[dict[str, Any]], reply: Reply) -> None:
        """A unit that is refused with 503 may be stored all the same, as after a 503 to its own PUT."""
        results = reply.document["results"] if reply.is_ok else [{"outcome": "unknown"}] * len(units)
        for unit, result in zip(units, results, strict=True):
            known, outcome = self._descriptions[unit["code"]], result["outcome"]
            is_away = outcome == "refused" and result["problem"]["status"] == 503
            if is_away or outcome == "unknown" or reply.first != reply.call:
                known.unsettled.add(unit["description"])
            if outcome not in ("refused", "unknown"):
                known.last = unit["description"]

    def _text(self) -> str:
        return f"{self.caller.name} {next(self._texts)}"

    def _price(self) -> int:
        return self.chance.choice(PRICES)


@dataclass
class Desk:
    """Bookings that wait for staff."""

    deposits: deque[Held] = field(default_factory=lambda: deque(maxlen=WAITING))
    reserved: deque[Held] = field(default_factory=lambda: deque(maxlen=WAITING))
    refunds: deque[Held] = field(default_factory=lambda: deque(maxlen=WAITING))

    def take_in(self, held: Held, reply: Reply) -> None:
        """After the deposit was confirmed, or the booking has ended."""
        status = reply.document.get("status") if reply.is_ok else None
        if status == "reserved":
            self.reserved.append(held)
        elif status == "refund-due":
            self.refunds.append(held)


class Buyer(Client):
    HOLDING: Mapping[str, int] = {"sign": 60, "cancel": 32, "lapse": 8}
    SIGNED: Mapping[str, int] = {"pay": 40, "staff": 20, "cancel": 32, "lapse": 8}

    def __init__(self, caller: Caller, market: Market, desk: Desk) -> None:
        super().__init__(caller, market)
        self._desk = desk
        self._details = {**BUYER, "buyerName": caller.name}
        self._names = itertools.count()

    async def take_turn(self) -> None:
        reply = await self.hold(self.chance.choice(CODES))
        if not reply.is_ok:
            return
        held = reply.document
        step = self.draw(self.HOLDING)
        if step == "sign":
            step = await self._sign(held)
        if step == "cancel":
            await self._insist("cancel", self.market.cancel(held), held)
        elif step == "pay":
            await self._pay(held)
        elif step == "staff":
            self._desk.deposits.append(held)

    async def hold(self, code: str) -> Reply:
        """Half of the holds are named, and are repeated until they are known. Of the others nobody has the
        token after a lost answer: they lapse."""
        if self.chance.random() < 0.5:
            return await self.caller.call("hold", self.market.hold(code), code)
        request = self.market.hold(code, f"{self._name()}.{self.chance.getrandbits(64):016x}")
        return await self.caller.insist("hold", lambda: request, code)

    async def _sign(self, held: Held) -> str:
        """Return what comes next."""
        reply = await self._insist("sign", self.market.sign(held, self._details), held)
        return self.draw(self.SIGNED) if reply.is_ok else "lapse"

    async def _pay(self, held: Held) -> None:
        """As the payment system does: each repetition is signed anew, and some payments are told twice."""
        code, payment = held["unit"]["code"], self._name()
        reply = await self.caller.insist("pay", lambda: self.market.pay(payment, held), code)
        if reply.is_ok and self.chance.random() < 0.2:
            await self.caller.call("pay", self.market.pay(payment, held), code, repeats=reply.first)
        self._desk.take_in(held, reply)

    async def _insist(self, op: str, request: Request, held: Held) -> Reply:
        return await self.caller.insist(op, lambda: request, held["unit"]["code"])

    def _name(self) -> str:
        return f"{self.caller.name}-{next(self._names)}"


class Staff(Client):
    """They work off what waits for them, and see to it that units come back on sale."""

    TURNS: Mapping[str, int] = {"deposits": 25, "reserved": 25, "refunds": 15, "walk": 35}
    IN_STATUS: Mapping[str, Mapping[str, int]] = {
        "available": {"take-off-sale": 2, "archive": 1, "walk-in": 1, "open": 2, "": 6},
        "held": {"extend": 2, "cancel-hold": 1, "take-off-sale": 1, "": 6},
        "reserved": {"cancel-reservation": 3, "close-sale": 2, "extend": 1},
        "sold": {"revoke-sale": 1},
        "unavailable": {"put-on-sale": 1},
    }

    def __init__(self, caller: Caller, market: Market, desk: Desk) -> None:
        super().__init__(caller, market)
        self._desk = desk

    async def take_turn(self) -> None:
        turn = self.draw(self.TURNS)
        waiting: deque[Held] = getattr(self._desk, turn, deque())
        if not waiting:
            await self._look_at(self.chance.choice(CODES))
        elif turn == "deposits":
            await self._act_on("confirm-deposit", waiting.popleft())
        elif turn == "refunds":
            await self._act_on("mark-refunded", waiting.popleft())
        else:
            action = self.draw({"close-sale": 1, "cancel": 1})
            await self._act_on(
                action, waiting.popleft(), op="cancel-booking" if action == "cancel" else action
            )

    async def _act_on(self, action: str, held: Held, op: str | None = None) -> None:
        request = self.market.staff_on_booking(held, action)
        reply = await self.caller.insist(op or action, lambda: request, held["unit"]["code"])
        self._desk.take_in(held, reply)

    async def _look_at(self, code: str) -> None:
        """Not repeated: whoever looks again sees what has become of it."""
        path = f"/v1/backoffice/projects/{self.market.slug}/units/{code}"
        found = await self.caller.call("read", Request("GET", path, self.market.key), code)
        if found.is_ok and (action := self.draw(self.IN_STATUS[found.document["status"]])):
            is_walk_in = action == "walk-in"
            request = self.market.act(
                code, "close-sale" if is_walk_in else action, BUYER if is_walk_in else None
            )
            await self.caller.call(action, request, code)


class FeedReader(Client):
    """Follows the feed of events from its start."""

    cursor: str | None = None

    async def take_turn(self) -> None:
        while await self.read_page() == PAGE_SIZE:
            pass

    async def read_page(self) -> int | None:
        """Return how many events were on it, or None if there was no answer."""
        query = f"limit={PAGE_SIZE}" + ("" if self.cursor is None else f"&after={self.cursor}")
        request = Request("GET", f"/v1/integration/events?{query}", self.market.key)
        reply = await self.caller.call("feed", request, with_document=False)
        if not reply.is_ok:
            return None
        ids, after = [event["id"] for event in reply.document["events"]], self.cursor
        self.cursor = reply.document["nextCursor"]
        if ids or self.cursor != after:
            self.caller.journal.history.note(
                "page", reader=self.caller.name, after=after, events=ids, next=self.cursor
            )
        return len(ids)


class Clients:
    def __init__(
        self,
        addresses: list[str],
        database_url: str,
        receivers: Mapping[str, str],
        history: History,
        seed: int,
    ) -> None:
        """``receivers``: URLs by name; the endpoint of the one named "ordered" is ordered."""
        self.addresses = addresses
        self.journal = Journal(history)
        self.markets: dict[str, Market] = {}
        """By role: "erp", "staff", "feed" and "imports", each with a key of its own."""
        self.endpoints: dict[str, dict[str, Any]] = {}
        """As registered, each with its secret, by the name of its receiver."""
        self.desk = Desk()
        self._database_url = database_url
        self._receivers = receivers
        self._seed = seed
        self._writers: list[Client] = []
        self._readers: list[FeedReader] = []

    @property
    def counts(self) -> Counter[str]:
        return self.journal.counts

    def caller(self, name: str, *, at: int = 0, pace: tuple[float, float] = PACE) -> Caller:
        """A client of this name, whose choices follow from the seed."""
        chance = Random(f"{self._seed} {name}")
        return Caller(name, self.journal, self.addresses, chance, at=at, pace=pace)

    async def prepare(self) -> None:
        """Make project, keys, endpoints and units. Both servers and the database are well."""
        async with Database(self._database_url) as database:
            new = api_keys.NewApiKey("admin", tuple(Scope))
            admin = (await api_keys.issue(database, new)).text
        for slug in (PROJECT, IMPORTS):
            await self._set_up("projects", admin, {"slug": slug, "name": f"Project {slug}"})
        roles: dict[str, list[str]] = {
            "erp": ["integration"], "staff": ["backoffice", "admin"], "feed": ["integration"],
            "imports": ["integration"],
        }  # fmt: skip
        for role, scopes in roles.items():
            slug = IMPORTS if role == "imports" else PROJECT
            body = {"name": role, "scopes": scopes, "projects": [slug]}
            issued = await self._set_up("keys", admin, body)
            self.markets[role] = Market(self.addresses[0], issued["key"], slug)
        for name, url in self._receivers.items():
            config = {"url": url, "description": name, "ordered": name == "ordered"}
            self.endpoints[name] = await self._set_up("endpoints", admin, config)
        self._make_clients()
        erps = [client for client in self._writers if isinstance(client, Erp)]
        await asyncio.gather(*(erp.create_units() for erp in erps))

    async def run(self) -> None:
        """Until `stop` is called. The readers of the feed go on for as long as the others finish."""
        async with asyncio.TaskGroup() as group:
            readers = [group.create_task(reader.run()) for reader in self._readers]
            writers = [group.create_task(writer.run()) for writer in self._writers]
            await asyncio.wait(writers)
            for reader in self._readers:
                reader.caller.is_over = True
            await asyncio.wait(readers)

    def stop(self) -> None:
        """Let the writers finish what they are at; `run` returns then."""
        for writer in self._writers:
            writer.caller.is_over = True

    async def read_feeds_to_the_end(self) -> None:
        """After `run`, once all events are in the feed: each reader goes on to the end of it.

        A reader that does not get there in time is for the checker to find.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_TO_THE_END_SECONDS):
                for reader in self._readers:
                    while await reader.read_page() != 0:
                        pass
        for reader in self._readers:
            reader.caller.close()

    def _make_clients(self) -> None:
        for number in range(ERPS):
            caller = self.caller(f"erp-{number}", at=number)
            self._writers.append(Erp(caller, self.markets["erp"], codes_of(number)))
        for number in range(BUYERS):
            caller = self.caller(f"buyer-{number}", at=number)
            self._writers.append(Buyer(caller, self.markets["staff"], self.desk))
        for number in range(STAFF):
            caller = self.caller(f"staff-{number}", at=number, pace=STAFF_PACE)
            self._writers.append(Staff(caller, self.markets["staff"], self.desk))
        for number in range(len(self.addresses)):
            caller = self.caller(f"reader-{number}", at=number, pace=POLL_PACE)
            self._readers.append(FeedReader(caller, self.markets["feed"]))

    async def _set_up(self, kind: str, key: str, body: object) -> dict[str, Any]:
        line = await open_line(self.addresses[0])
        try:
            return expect(await line.ask(Request("POST", f"/v1/backoffice/{kind}", key, body)), 201).body
        finally:
            line.close()
