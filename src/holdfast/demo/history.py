"""What has happened in the demo before the visitor came: each of it by the operation that does it always."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import cycle
from typing import NamedTuple

from holdfast.demo.access import DemoAccess, new_access
from holdfast.demo.project import ADDRESS, DRAWINGS, NAME, SLUG, demo_units
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Buyer
from holdfast.domain.errors import DomainError, PreconditionFailed
from holdfast.domain.hold_limits import HoldLimits
from holdfast.domain.status import Action, Caller
from holdfast.domain.unit import Media, Unit
from holdfast.domain.unit_writes import Precondition
from holdfast.operations.booking_commands import Requester
from holdfast.operations.bookings import BookingRules, Bookings, FoundBooking, StaffAction
from holdfast.operations.projects import add_project, list_projects
from holdfast.operations.units import PatchUnit, ReplaceUnit, Units
from holdfast.operations.write_path import Command
from holdfast.storage import schema
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
"""Furnished, to be shown."""
CANCELLED = ("A-0403", "B-0701")
REFUND_DUE = ("B-0602",)

_REQUEST_ID = "demo"
_UNTOUCHED = 1


class _Resident(NamedTuple):
    buyer: Buyer
    language: str


_Course = Callable[[str, _Resident], Awaitable[None]]


def _resident(name: str, mailbox: str, phone: str, language: str) -> _Resident:
    return _Resident(Buyer(name, f"{mailbox}@example.com", phone), language)


_RESIDENTS = (
    _resident("Nora Al-Harbi", "nora.alharbi", "+966 50 555 0101", "en"),
    _resident("عبدالله القحطاني", "abdullah.q", "+966 55 555 0102", "ar"),
    _resident("Layla Haddad", "layla.haddad", "+966 54 555 0103", "en"),
    _resident("سارة العتيبي", "sarah.otaibi", "+966 56 555 0104", "ar"),
    _resident("فهد الدوسري", "fahad.d", "+966 50 555 0105", "ar"),
    _resident("Omar Siddiqui", "omar.siddiqui", "+966 53 555 0106", "en"),
    _resident("ريم الشمري", "reem.shammari", "+966 58 555 0107", "ar"),
    _resident("Yousef Mansour", "yousef.mansour", "+966 55 555 0108", "en"),
    _resident("منيرة الغامدي", "munira.g", "+966 59 555 0109", "ar"),
    _resident("Hana Al-Zahrani", "hana.zahrani", "+966 50 555 0110", "en"),
    _resident("ماجد السبيعي", "majed.s", "+966 54 555 0111", "ar"),
)


async def happen(database: Database, inventory: Units, units: Iterable[Unit]) -> None:
    """To units that nothing has happened to yet: what was interrupted goes on, what a visitor did stays."""
    untouched = {unit.code for unit in units if unit.version == _UNTOUCHED}
    courses = _Courses(Bookings(database, inventory, BookingRules(limits=HoldLimits(0, 0, 0))))
    residents = cycle(_RESIDENTS)
    await asyncio.gather(
        *(
            course(code, resident)
            for codes, course in courses.all()
            for code, resident in zip(codes, residents, strict=False)
            if code in untouched
        )
    )


class _Courses:
    """Each way that a booking can go."""

    def __init__(self, selling: Bookings) -> None:
        self._selling = selling

    def all(self) -> Iterator[tuple[tuple[str, ...], _Course]]:
        yield SOLD, self.sell
        yield RESERVED, self.reserve
        yield WALK_IN, self.sell_at_the_desk
        yield CANCELLED, self.change_their_mind
        yield REFUND_DUE, self.withdraw
        yield OFF_SALE, self.take_off_sale

    async def sell(self, code: str, resident: _Resident) -> None:
        await self._selling.close_sale(await self._reserved(code, resident), Caller.STAFF, COMMAND)

    async def reserve(self, code: str, resident: _Resident) -> None:
        await self._reserved(code, resident)

    async def sell_at_the_desk(self, code: str, resident: _Resident) -> None:
        await self._act(code, StaffAction(Action.CLOSE_SALE, resident.buyer))

    async def change_their_mind(self, code: str, _: _Resident) -> None:
        await self._selling.cancel_as_buyer(await self._held(code), _REQUEST_ID)

    async def withdraw(self, code: str, resident: _Resident) -> None:
        """After the deposit: it is to be paid back."""
        await self._selling.cancel(await self._reserved(code, resident), Caller.STAFF, COMMAND)

    async def take_off_sale(self, code: str, _: _Resident) -> None:
        await self._act(code, StaffAction(Action.TAKE_OFF_SALE))

    async def _held(self, code: str) -> FoundBooking:
        held = await self._selling.hold(SLUG, code, Requester(_REQUEST_ID), None, _REQUEST_ID)
        return await self._selling.find(held.booking.reference)

    async def _reserved(self, code: str, resident: _Resident) -> FoundBooking:
        found = await self._held(code)
        await self._selling.sign(found, resident.buyer, _REQUEST_ID, resident.language)
        await self._selling.confirm_deposit(found, Caller.STAFF, COMMAND)
        return found

    async def _act(self, code: str, asked: StaffAction) -> None:
        await self._selling.act(SLUG, code, asked, Caller.STAFF, COMMAND)


# Fills a database that has no project yet, and never touches what a visitor has changed.

_ALL_UNITS = 1000


async def fill(database: Database, public_url: str = ADDRESS) -> DemoAccess:
    """The project with its units and their past, if there is no other; and a way in, new each time."""
    slugs = [project.slug for project in await list_projects(database)]
    if not slugs:
        await add_project(database, SLUG, NAME)
    if slugs in ([], [SLUG]):
        async with _inventory(database) as inventory:
            await _add_missing_units(inventory, public_url)
            units = await _units(inventory)
            await happen(database, inventory, units)
            await _point_drawings_at(inventory, units, public_url)
    return await new_access(database, has_project=not slugs or SLUG in slugs)


async def is_demo(database: Database) -> bool:
    async with database.reading() as connection:
        return await schema.is_demo(connection)


@asynccontextmanager
async def _inventory(database: Database) -> AsyncIterator[Units]:
    inventory = Units(database)
    try:
        yield inventory
    finally:
        await inventory.close()


async def _add_missing_units(inventory: Units, public_url: str) -> None:
    """All of them, or what an earlier start was interrupted in; never those that are there."""
    project_id = await inventory.project_id(SLUG)
    absent = Precondition(none_match=frozenset("*"))
    await _write(
        inventory,
        [
            ReplaceUnit((project_id, unit.code), unit.fields, unit.status, absent)
            for unit in demo_units(public_url)
        ],
    )


async def _units(inventory: Units) -> list[Unit]:
    units, _ = await inventory.page(SLUG, "", _ALL_UNITS, None, None)
    return units


async def _point_drawings_at(inventory: Units, units: Iterable[Unit], public_url: str) -> None:
    """Drawings are named by the server's address, which may be another one than at the last start."""
    commands = []
    for unit in units:
        images, files = unit.fields.images, unit.fields.files
        pointed = _pointed(images, public_url), _pointed(files, public_url)
        if pointed != (images, files):
            changes = dict(zip(("images", "files"), pointed, strict=True))
            commands.append(PatchUnit((unit.project_id, unit.code), changes))
    if commands:
        await _write(inventory, commands)


def _pointed(sent: tuple[Media, ...], public_url: str) -> tuple[Media, ...]:
    return tuple(
        one if isinstance(one, str) else {**one, "url": _address(one["url"] or "", public_url)}
        for one in sent
    )


def _address(url: str, public_url: str) -> str:
    _, found, name = url.partition(f"{DRAWINGS}/")
    return f"{public_url}{DRAWINGS}/{name}" if found else url


async def _write(inventory: Units, commands: Sequence[Command]) -> None:
    for outcome in await inventory.write_many(commands, store=True):
        if isinstance(outcome, DomainError) and not isinstance(outcome, PreconditionFailed):
            raise outcome
