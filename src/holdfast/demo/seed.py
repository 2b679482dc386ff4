"""Seed the demo's database: the project, its units and earlier bookings, and credentials for the visitor."""

import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import cycle
from typing import NamedTuple

from holdfast.demo.project import DEFAULT_URL, DRAWINGS_PATH, NAME, SLUG, demo_units
from holdfast.domain.api_key import Scope
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import Buyer
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.decision import Precondition
from holdfast.domain.endpoint import EndpointConfig
from holdfast.domain.errors import DomainError, PreconditionFailed, ProjectExists, UnknownStaff
from holdfast.domain.holds import NO_LIMITS, HoldPeriods
from holdfast.domain.permissions import Role
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import Media, Unit
from holdfast.operations import api_keys
from holdfast.operations.api_keys import NewApiKey
from holdfast.operations.booking_commands import Requester
from holdfast.operations.bookings import Bookings, StaffAction
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.projects import add_project
from holdfast.operations.staff import StaffAccounts
from holdfast.operations.units import PatchUnit, ReplaceUnit, Units
from holdfast.operations.write_path import Command
from holdfast.storage import schema
from holdfast.storage.database import Database

KEY_NAME = "holdfast serve --demo"
EMAIL = "demo@holdfast.example"
RECEIVER_DESCRIPTION = "Demo receiver"

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
CANCELLED = ("A-0403", "B-0701")
REFUND_DUE = ("B-0602",)

_REQUEST_ID = "demo"
_ADDRESS = "192.0.2.1"
"""Of all buyers: one that no real buyer has."""
_FIRST_VERSION = 1
_MAX_UNITS = 1000
_MAX_ENDPOINTS = 1000
_PASSWORD_BYTES = 12

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


class DemoAccess(NamedTuple):
    key: str
    password: str


async def seed_demo(database: Database, public_url: str = DEFAULT_URL) -> DemoAccess:
    """Add what is missing of the project and its bookings, and return new credentials.

    The database is marked first, so that the next start completes one that was interrupted, except for the
    booking that it was making. Units that a visitor has changed stay as they are.
    """
    async with database.writing() as connection:
        await schema.check_may_fill(connection, SLUG)
        await schema.mark_as_filled(connection)
    with suppress(ProjectExists):
        await add_project(database, SLUG, NAME)
    units = Units(database)
    try:
        project_id = await units.project_id(SLUG)
        if_absent = Precondition(none_match=frozenset("*"))
        commands = [
            ReplaceUnit((project_id, unit.code), unit.fields, unit.status, if_absent)
            for unit in demo_units(public_url)
        ]
        await _write(units, commands)
        rows, _ = await units.page(SLUG, "", _MAX_UNITS, None, None)
        await _make_bookings(database, units, rows)
        await _update_drawing_urls(units, rows, public_url)
    finally:
        await units.close()
    # The key and the password of the last start stop working.
    await api_keys.revoke_named(database, KEY_NAME)
    issued = await api_keys.issue(database, NewApiKey(KEY_NAME, [Scope.INTEGRATION, Scope.BACKOFFICE]))
    return DemoAccess(issued.text, await _new_password(database))


async def register_receiver(endpoints: Endpoints, url: str) -> str:
    """Register the demo's receiver as an endpoint in place of the last start's, and return its secret."""
    for endpoint in await endpoints.page(None, None, _MAX_ENDPOINTS):
        if endpoint.config.description == RECEIVER_DESCRIPTION:
            await endpoints.remove(endpoint.id, COMMAND)
    issued = await endpoints.add(EndpointConfig(url, RECEIVER_DESCRIPTION), COMMAND)
    return issued.text


async def _new_password(database: Database) -> str:
    """Give the demo's admin a new password and end their sessions; add them if they are missing."""
    accounts, password = StaffAccounts(database), secrets.token_urlsafe(_PASSWORD_BYTES)
    try:
        staff = await accounts.find_by_email(EMAIL)
    except UnknownStaff:
        await accounts.add(EMAIL, "Demo", Role.ADMIN, password, COMMAND)
        return password
    await accounts.change(staff.id, {"role": Role.ADMIN, "disabled": False}, COMMAND)
    _, token = await accounts.reset(staff.id, COMMAND)
    await accounts.choose_password(token, password, None)
    return password


async def _make_bookings(database: Database, units: Units, rows: Iterable[Unit]) -> None:
    unchanged = {unit.code for unit in rows if unit.version == _FIRST_VERSION}
    bookings = Bookings(database, units, HoldPeriods(), NO_LIMITS)
    codes = (*SOLD, *RESERVED, *WALK_IN, *CANCELLED, *REFUND_DUE, *OFF_SALE)
    # One after the other, so that an interrupted start leaves at most one half made.
    for code, (buyer, language) in zip(codes, cycle(_BUYERS), strict=False):
        if code in unchanged:
            await _make_booking(bookings, code, buyer, language)


async def _make_booking(bookings: Bookings, code: str, buyer: Buyer, language: str) -> None:
    if code in WALK_IN:
        sale = StaffAction(Action.CLOSE_SALE, buyer)
        await bookings.act_on_unit(SLUG, code, sale, Caller.STAFF, COMMAND)
        return
    if code in OFF_SALE:
        await bookings.act_on_unit(SLUG, code, StaffAction(Action.TAKE_OFF_SALE), Caller.STAFF, COMMAND)
        return
    hold = await bookings.hold(SLUG, code, Requester(_ADDRESS), None, _REQUEST_ID)
    booking = await bookings.find(hold.booking.reference)
    if code in CANCELLED:
        await bookings.cancel_as_buyer(booking, _REQUEST_ID)
        return
    await bookings.sign(booking, buyer, _REQUEST_ID, language)
    actions = [BookingAction.CONFIRM_DEPOSIT]
    if code in SOLD:
        actions.append(BookingAction.CLOSE_SALE)
    elif code in REFUND_DUE:
        actions.append(BookingAction.CANCEL)
    for action in actions:
        await bookings.act_on_booking(booking, action, Caller.STAFF, COMMAND)


async def _update_drawing_urls(units: Units, rows: Iterable[Unit], public_url: str) -> None:
    """Point drawings at the server's address, which may differ from the last start's."""
    commands = []
    for unit in rows:
        fields = {"images": unit.fields.images, "files": unit.fields.files}
        updated = {
            name: tuple(_with_url(medium, public_url) for medium in media) for name, media in fields.items()
        }
        if updated != fields:
            commands.append(PatchUnit((unit.project_id, unit.code), updated))
    if commands:
        await _write(units, commands)


def _with_url(media: Media, public_url: str) -> Media:
    if isinstance(media, str):
        return media
    _, is_drawing, name = (media["url"] or "").partition(f"{DRAWINGS_PATH}/")
    return {**media, "url": f"{public_url}{DRAWINGS_PATH}/{name}"} if is_drawing else media


async def _write(units: Units, commands: Sequence[Command]) -> None:
    for outcome in await units.write_many(commands, store=True):
        if isinstance(outcome, DomainError) and not isinstance(outcome, PreconditionFailed):
            raise outcome
