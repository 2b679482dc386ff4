"""The project, and the state that buyers, staff and the ERP share: bookings, activity and the clock."""

import asyncio
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

from holdfast.simulation.client import ApiClient, ApiResponse, SimulationError, SimulationStopped

# All buyers come from one address, which may hold 20 units at a time; some are left to people who watch.
MAX_BUYERS_AT_ONCE = 15
_KEPT_ENTRIES = 50
_HELD = frozenset({"open", "signed"})
_LIVE = _HELD | {"reserved", "sold"}
_TAKEN = frozenset({"held", "reserved", "sold"})


RESERVE_SHARE = 0.2
_SCOPES = "It needs the scopes integration and backoffice."
_PAGE_SIZE = 1000
_MAX_PAGES = 20
_LANGUAGE_SEPARATOR = re.compile(r"\s\|\s|\n")
_ARABIC = re.compile(r"[\u0600-\u06FF]")


class Project(NamedTuple):
    slug: str
    name: str
    codes: list[str]
    """The codes of all units in the storefront, up to the page limit."""
    available: int

    @property
    def latin_name(self) -> str:
        """The part of a bilingual name that any terminal can show, or the slug."""
        parts = [part.strip() for part in _LANGUAGE_SEPARATOR.split(self.name)]
        return next((part for part in parts if part and not _ARABIC.search(part)), self.slug)

    @property
    def reserve(self) -> int:
        return max(1, round(RESERVE_SHARE * len(self.codes)))


@dataclass
class Booking:
    reference: str
    code: str
    token: str
    buyer: str
    status: str = "open"
    expires_at: float | None = None
    """Estimated end of the hold, in seconds since the simulation began."""
    is_ending: bool = False
    """Its end was requested. The unit may be another buyer's before the response is here."""
    has_late_payment: bool = False
    """It may become live again: a late deposit takes the unit if it is free."""
    may_be_extended: bool = True
    """Staff extend a hold once, and not that of a buyer who has walked away."""

    @property
    def is_held(self) -> bool:
        return self.status in _HELD

    @property
    def is_live(self) -> bool:
        return self.status in _LIVE


class ActivityEntry(NamedTuple):
    seconds: float
    actor: str
    text: str


@dataclass
class SimulationState:
    client: ApiClient
    project: Project
    pace: float = 1.0
    pending_holds: int = 0
    bookings: dict[str, Booking] = field(default_factory=dict)
    violations: list[str] = field(default_factory=list)
    current: dict[str, tuple[str, Booking | None]] = field(default_factory=dict)
    entries: deque[ActivityEntry] = field(default_factory=lambda: deque(maxlen=_KEPT_ENTRIES))
    on_entry: Callable[[ActivityEntry], None] = lambda _: None
    counts: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    started_at: float = field(default_factory=time.monotonic)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_BUYERS_AT_ONCE))

    def elapsed(self) -> float:
        return time.monotonic() - self.started_at

    async def pause(self, seconds: float) -> None:
        """Wait for so many seconds at pace 1."""
        await self.sleep(seconds / self.pace)

    async def sleep(self, seconds: float) -> None:
        """Wait in real time, for waits that the server asks for."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopped.wait(), seconds)
        if self.stopped.is_set():
            raise SimulationStopped

    def record(self, actor: str, text: str, count: str | None = None, error: str | None = None) -> None:
        """Record an event; ``error`` is the problem for which the server rejected a request."""
        if count is not None:
            self.counts[count] += 1
        if error is not None:
            self.errors[error] += 1
        entry = ActivityEntry(self.elapsed(), actor, text)
        self.entries.append(entry)
        self.on_entry(entry)

    def record_response(
        self, response: ApiResponse, actor: str, text: str, count: str | None, rejected: str
    ) -> bool:
        """Record ``text`` for a success, or ``rejected`` with the problem; return whether it is a success."""
        if response.is_success:
            self.record(actor, text, count)
        else:
            self.record(actor, rejected, error=response.problem)
        return response.is_success

    def add_violation(self, sentence: str) -> None:
        if sentence not in self.violations:
            self.violations.append(sentence)

    def held_bookings(self) -> list[Booking]:
        return [booking for booking in self.bookings.values() if booking.is_held]

    @property
    def taken_count(self) -> int:
        """The number of units that are taken or may be taken again by a late deposit."""
        return sum(booking.is_live or booking.has_late_payment for booking in self.bookings.values())

    @property
    def is_nearly_sold_out(self) -> bool:
        left = self.project.available - self.taken_count - self.pending_holds
        return left <= self.project.reserve

    def units_path(self, surface: str) -> str:
        return f"/v1/{surface}/projects/{quote(self.project.slug, safe='')}/units"

    def unit_path(self, surface: str, code: str) -> str:
        # HTTP clients resolve a segment of dots as a relative path.
        return f"{self.units_path(surface)}/{quote(code, safe='').replace('.', '%2E')}"

    async def load_unit(self, code: str) -> ApiResponse:
        return await self.client.request("GET", self.unit_path("integration", code))

    async def request_as_buyer(
        self, method: str, booking: Booking, action: str = "", body: Mapping[str, Any] | None = None
    ) -> ApiResponse:
        path = f"/v1/storefront/bookings/{booking.reference}{action}"
        return await self.client.request(method, path, body, Authorization=f"Bearer {booking.token}")

    async def cancel_hold(self, booking: Booking) -> ApiResponse:
        booking.is_ending = True
        response = await self.request_as_buyer("DELETE", booking)
        await self.update_booking(booking, response)
        return response

    async def act_on_booking(self, booking: Booking, action: str) -> ApiResponse:
        response = await self.client.request("POST", f"/v1/backoffice/bookings/{booking.reference}/{action}")
        await self.update_booking(booking, response)
        return response

    async def update_booking(self, booking: Booking, response: ApiResponse) -> None:
        """Take the status from the response, or load it if the response does not have it."""
        if not (response.is_success and "status" in response.document):
            response = await self.request_as_buyer("GET", booking)
        if response.is_success:
            was_live, booking.status = booking.is_live, str(response.document["status"])
            booking.is_ending = False
            if booking.is_live and not was_live:
                await self.check_conflict(booking)

    async def check_conflict(self, booking: Booking) -> None:
        """Load two bookings that seem to have one unit: one may have expired meanwhile."""
        other = self.find_conflict(booking)
        if other is None:
            return
        for each in (other, booking):
            response = await self.request_as_buyer("GET", each)
            if response.is_success:
                each.status = str(response.document["status"])
        if booking.is_live and other.is_live:
            both = f"{other.reference} and {booking.reference}"
            self.add_violation(f"{booking.code} was given to two buyers at once: {both}.")

    def find_conflict(self, booking: Booking) -> Booking | None:
        for other in self.bookings.values():
            if other is not booking and other.code == booking.code and other.is_live and not other.is_ending:
                return other
        return None

    def set_expiry(self, booking: Booking, response: ApiResponse) -> None:
        """Estimate by the server's clock, whose seconds are cut: rather too late than too early."""
        expires_at, now = datetime.fromisoformat(response.document["holdExpiresAt"]), response.date
        booking.expires_at = None if now is None else self.elapsed() + (expires_at - now).total_seconds()


async def find_project(client: ApiClient, slug: str | None) -> Project:
    """Return the project with this slug, or the first that has enough for sale."""
    documents = await _list_all(client, "/v1/integration/projects", "projects")
    if not documents and slug is None:
        raise SimulationError("There is no project yet.")
    documents = [document for document in documents if slug in (None, document["slug"])]
    if not documents:
        raise SimulationError(f"The key has no access to a project {slug}.")
    for document in documents:
        path = quote(document["slug"], safe="")
        units = await _list_all(client, f"/v1/storefront/projects/{path}/units", "units")
        available = sum(unit["status"] == "available" for unit in units)
        project = Project(document["slug"], document["name"], [unit["code"] for unit in units], available)
        if available > project.reserve:
            if (await client.request("GET", f"/v1/backoffice/projects/{path}")).status == 403:
                raise SimulationError(f"The key has no access to the back office. {_SCOPES}")
            return project
    if slug is None:
        text = "No project has enough units for sale: a fifth of the units on sale always stays available."
    elif not project.available:
        text = f"No units are for sale in {slug}."
    else:
        text = (
            f"Too few units are for sale in {slug}: {project.available} of {len(project.codes)} units,"
            f" and {project.reserve} always stay available."
        )
    raise SimulationError(text)


async def _list_all(client: ApiClient, path: str, noun: str) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    cursor: str | None = ""
    for _ in range(_MAX_PAGES):
        page = f"{path}?limit={_PAGE_SIZE}" + (f"&cursor={cursor}" if cursor else "")
        response = await client.request("GET", page)
        if response.status == 403:
            raise SimulationError(f"The key has no access to the integration API. {_SCOPES}")
        if not response.is_success:
            raise SimulationError(f"Holdfast does not list its {noun}: {response.problem}.")
        items += response.document[noun]
        cursor = response.document["nextCursor"]
        if cursor is None:
            break
    return items


def find_history_errors(
    code: str, entries: Sequence[Mapping[str, Any]], references: Collection[str] = ()
) -> list[str]:
    """Check the history of a unit, oldest entry first; the earliest entries may be missing.

    ``references``: bookings whose hold must be in it.
    """
    errors, holder, status = [], None, None
    opened = set()
    for entry in entries:
        after = (entry["after"] or {}).get("status")
        if after is None:
            continue
        before, reference = (entry["before"] or {}).get("status"), entry["bookingReference"]
        if status is not None and before != status:
            errors.append(f"{code} was {status}, and its next change began with {before}.")
        if after in _TAKEN and holder not in (None, reference):
            errors.append(f"{code} was {after} for {reference} while {holder} had it.")
        if after == "held":
            opened.add(reference)
        holder, status = (reference if after in _TAKEN else None), after
    lost = [reference for reference in references if reference not in opened]
    return [*errors, *(f"The hold {reference} of {code} is not in its history." for reference in lost)]
