"""Seed the demo's database: the project, its units, and bookings that were made before the visitor came."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import cycle

from holdfast.demo.access import DemoAccess, new_access
from holdfast.demo.project import DEFAULT_URL, DRAWINGS_PATH, NAME, SLUG, demo_units
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Buyer
from holdfast.domain.decision import Precondition
from holdfast.domain.errors import DomainError, PreconditionFailed
from holdfast.domain.holds import HoldLimits
from holdfast.domain.status import Action, Caller
from holdfast.domain.unit import Media, Unit
from holdfast.operations.booking_commands import Requester
from holdfast.operations.bookings import BookingRules, Bookings, FoundBooking, StaffAction
from holdfast.operations.projects import add_project, list_projects
from holdfast.operations.units import PatchUnit, ReplaceUnit, Units
from holdfast.operations.write_path import Command
from holdfast.storage.database import Database

# The first tower is well under way, the second has just been opened.
SOLD = (
    "A-0102", "A-0103", "A-0104", "A-0106", "A-0201", "A-0203", "A-0204", "A-0302", "A-0305", "A-0306",
    "A-0404", "A-0503", "A-0506", "A-0602", "A-0704", "A-0806", "A-0903", "A-1004", "A-1106", "A-1102",
    "B-0103", "B-0105", "B-0204", "B-0405",
)  # fmt: skip
WALK_IN = ("A-0101", "B-0302")
RESERVED = (
    "A-0205", "A-0303", "A-0402", "A-0504", "A-0606", "A-0803", "A-1006",
    "B-0102", "B-0203", "B-0305", "B-0503", "B-0904",
)  # fmt: skip
OFF_SALE = ("A-0105", "B-0101")
"""Show flats."""
CANCELLED = ("A-0403", "B-0701")
REFUND_DUE = ("B-0602",)

_REQUEST_ID = "demo"
_FIRST_VERSION = 1
_MAX_UNITS = 1000


# Each with the language of their agreement.
_BUYERS = (
    (Buyer("Nora Al-Harbi", "nora.alharbi@example.com", "+966 50 555 0101"), "en"),
    (Buyer("عبدالله القحطاني", "abdullah.q@example.com", "+966 55 555 0102"), "ar"),
    (Buyer("Layla Haddad", "layla.haddad@example.com", "+966 54 555 0103"), "en"),
    (Buyer("سارة العتيبي", "sarah.otaibi@example.com", "+966 56 555 0104"), "ar"),
    (Buyer("فهد الدوسري", "fahad.d@example.com", "+966 50 555 0105"), "ar"),
    (Buyer("Omar Siddiqui", "omar.siddiqui@example.com", "+966 53 555 0106"), "en"),
    (Buyer("ريم الشمري", "reem.shammari@example.com", "+966 58 555 0107"), "ar"),
    (Buyer("Yousef Mansour", "yousef.mansour@example.com", "+966 55 555 0108"), "en"),
    (Buyer("منيرة الغامدي", "munira.g@example.com", "+966 59 555 0109"), "ar"),
    (Buyer("Hana Al-Zahrani", "hana.zahrani@example.com", "+966 50 555 0110"), "en"),
    (Buyer("ماجد السبيعي", "majed.s@example.com", "+966 54 555 0111"), "ar"),
)


async def seed_demo(database: Database, public_url: str = DEFAULT_URL) -> DemoAccess:
    """Add the project and its bookings unless there is another project, and return new credentials.

    An interrupted start is completed. Units that a visitor has changed stay as they are.
    """
    slugs = [project.slug for project in await list_projects(database)]
    if not slugs:
        await add_project(database, SLUG, NAME)
    if slugs in ([], [SLUG]):
        units = Units(database)
        try:
            await _add_missing_units(units, public_url)
            rows, _ = await units.page(SLUG, "", _MAX_UNITS, None, None)
            await _make_bookings(database, units, rows)
            await _update_drawing_urls(units, rows, public_url)
        finally:
            await units.close()
    return await new_access(database, has_project=not slugs or SLUG in slugs)


async def _add_missing_units(units: Units, public_url: str) -> None:
    project_id = await units.project_id(SLUG)
    if_absent = Precondition(none_match=frozenset("*"))
    await _write(
        units,
        [
            ReplaceUnit((project_id, unit.code), unit.fields, unit.status, if_absent)
            for unit in demo_units(public_url)
        ],
    )


async def _make_bookings(database: Database, units: Units, rows: Iterable[Unit]) -> None:
    """Make the bookings of units that have not changed since they were created."""
    unchanged = {unit.code for unit in rows if unit.version == _FIRST_VERSION}
    sales = _Sales(Bookings(database, units, BookingRules(limits=HoldLimits(0, 0, 0))))
    steps: tuple[tuple[tuple[str, ...], Callable[[str, Buyer, str], Awaitable[object]]], ...] = (
        (SOLD, sales.sell),
        (RESERVED, sales.reserve),
        (WALK_IN, sales.sell_to_walk_in),
        (CANCELLED, sales.cancel_as_buyer),
        (REFUND_DUE, sales.withdraw),
        (OFF_SALE, sales.take_off_sale),
    )
    buyers = cycle(_BUYERS)
    await asyncio.gather(
        *(
            step(code, *buyer)
            for codes, step in steps
            for code, buyer in zip(codes, buyers, strict=False)
            if code in unchanged
        )
    )


class _Sales:
    """Each way that a booking can go, by the operations that the API and the pages use."""

    def __init__(self, bookings: Bookings) -> None:
        self._bookings = bookings

    async def sell(self, code: str, buyer: Buyer, language: str) -> None:
        await self._bookings.close_sale(await self.reserve(code, buyer, language), Caller.STAFF, COMMAND)

    async def reserve(self, code: str, buyer: Buyer, language: str) -> FoundBooking:
        booking = await self._hold(code)
        await self._bookings.sign(booking, buyer, _REQUEST_ID, language)
        await self._bookings.confirm_deposit(booking, Caller.STAFF, COMMAND)
        return booking

    async def sell_to_walk_in(self, code: str, buyer: Buyer, _: str) -> None:
        await self._act(code, StaffAction(Action.CLOSE_SALE, buyer))

    async def cancel_as_buyer(self, code: str, _: Buyer, __: str) -> None:
        await self._bookings.cancel_as_buyer(await self._hold(code), _REQUEST_ID)

    async def withdraw(self, code: str, buyer: Buyer, language: str) -> None:
        """Cancel after the deposit, so that a refund is due."""
        await self._bookings.cancel(await self.reserve(code, buyer, language), Caller.STAFF, COMMAND)

    async def take_off_sale(self, code: str, _: Buyer, __: str) -> None:
        await self._act(code, StaffAction(Action.TAKE_OFF_SALE))

    async def _hold(self, code: str) -> FoundBooking:
        hold = await self._bookings.hold(SLUG, code, Requester(_REQUEST_ID), None, _REQUEST_ID)
        return await self._bookings.find(hold.booking.reference)

    async def _act(self, code: str, action: StaffAction) -> None:
        await self._bookings.act(SLUG, code, action, Caller.STAFF, COMMAND)


async def _update_drawing_urls(units: Units, rows: Iterable[Unit], public_url: str) -> None:
    """Point drawings at the server's address, which may differ from the last start's."""
    commands = []
    for unit in rows:
        fields = {"images": unit.fields.images, "files": unit.fields.files}
        updated = {name: _with_url(media, public_url) for name, media in fields.items()}
        if updated != fields:
            commands.append(PatchUnit((unit.project_id, unit.code), updated))
    if commands:
        await _write(units, commands)


def _with_url(media: tuple[Media, ...], public_url: str) -> tuple[Media, ...]:
    return tuple(
        medium
        if isinstance(medium, str)
        else {**medium, "url": _drawing_url(medium["url"] or "", public_url)}
        for medium in media
    )


def _drawing_url(url: str, public_url: str) -> str:
    _, is_drawing, name = url.partition(f"{DRAWINGS_PATH}/")
    return f"{public_url}{DRAWINGS_PATH}/{name}" if is_drawing else url


async def _write(units: Units, commands: Sequence[Command]) -> None:
    for outcome in await units.write_many(commands, store=True):
        if isinstance(outcome, DomainError) and not isinstance(outcome, PreconditionFailed):
            raise outcome
