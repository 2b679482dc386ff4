"""What was stored before is acknowledged again only when the synchronous standby has it.

A primary that crashes while a commit waits for the standby shows after its restart what it had committed,
although the standby may not have it.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.decision import ANY, Precondition
from holdfast.domain.endpoint import EndpointConfig
from holdfast.domain.errors import (
    DatabaseUnavailable,
    IdempotencyKeyUsed,
    PreconditionFailed,
    ProjectExists,
    StaffExists,
    TransitionNotAllowed,
    UnknownEndpoint,
)
from holdfast.domain.holds import NO_LIMITS, HoldPeriods
from holdfast.domain.payment import Payment
from holdfast.domain.permissions import Role
from holdfast.domain.transitions import Caller
from holdfast.operations import api_keys
from holdfast.operations.api_keys import NewApiKey
from holdfast.operations.bookings import Bookings, FoundBooking
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.payments import PaymentPage, Payments
from holdfast.operations.units import PatchUnit, Units
from holdfast.operations.write_path import write
from holdfast.storage import database as module
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox, new_encryption_key
from tests.operations.scene import KEYED, NORA
from tests.support.delivery_engine import NOWHERE, eventually
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import BUYER, new_units
from tests.support.staff import open_office
from tests.support.standby import without_standby

REQUEST, AGAIN = "request-1", UUID(int=7)
AT_OUR_PAGES = NORA._replace(secret="a buyer's secret")

Repeat = Callable[[], Awaitable[Any]]
Setup = Callable[[Database], Awaitable[Repeat]]


def selling(database: Database) -> Bookings:
    return Bookings(database, Units(database), HoldPeriods(), NO_LIMITS)


async def put(database: Database) -> Repeat:
    units, command = Units(database), replacement(await new_project(database), "A-1")
    return lambda: units.write(command)


async def patch(database: Database) -> Repeat:
    units, project_id = Units(database), await new_units(database, "A-1")
    return lambda: units.write(PatchUnit((project_id, "A-1"), {"description": "Quiet"}))


async def bulk(database: Database) -> Repeat:
    units, project_id = Units(database), await new_project(database)

    async def write_many() -> None:
        for outcome in await units.write_many([replacement(project_id, code) for code in "AB"], store=True):
            if isinstance(outcome, Exception):
                raise outcome

    return write_many


async def only_if_new(database: Database) -> Repeat:
    """The refusal of a repeated `If-None-Match: *` tells that the unit was made."""
    units = Units(database)
    command = replacement(await new_project(database), "A-1")._replace(
        precondition=Precondition(none_match=frozenset({ANY}))
    )

    async def make() -> None:
        with suppress(PreconditionFailed):
            await units.write(command)

    return make


async def keyed_hold(database: Database) -> Repeat:
    bookings = selling(database)
    await new_units(database, "A-1")
    return lambda: bookings.hold(SLUG, "A-1", KEYED, None, REQUEST)


async def own_hold(database: Database) -> Repeat:
    bookings = selling(database)
    await new_units(database, "A-1")
    token = (await bookings.hold(SLUG, "A-1", NORA, None, REQUEST)).token
    return lambda: bookings.hold(SLUG, "A-1", NORA, token, REQUEST)


async def second_click(database: Database) -> Repeat:
    bookings = selling(database)
    await new_units(database, "A-1")
    return lambda: bookings.open(SLUG, "A-1", AT_OUR_PAGES, REQUEST)


async def held(database: Database) -> tuple[Bookings, FoundBooking]:
    bookings = selling(database)
    project_id = await new_units(database, "A-1")
    await write(database, [PatchUnit((project_id, "A-1"), {"deposit_percent": Decimal(10)})])
    booking = (await bookings.hold(SLUG, "A-1", NORA, None, REQUEST)).booking
    return bookings, await bookings.find(booking.reference)


async def signature(database: Database) -> Repeat:
    bookings, found = await held(database)
    return lambda: bookings.sign(found, BUYER, REQUEST)


async def payment(database: Database) -> Repeat:
    bookings, found = await held(database)
    await bookings.sign(found, BUYER, REQUEST)
    payments = Payments(database, bookings._units, bookings, PaymentPage())
    report = Payment("pay_1", found.booking.reference, Decimal(100000))
    return lambda: payments.confirm(report, REQUEST)


async def cancellation(database: Database) -> Repeat:
    bookings, found = await held(database)

    async def cancel() -> None:
        with suppress(TransitionNotAllowed):
            await bookings.act_on_booking(found, BookingAction.CANCEL, Caller.STAFF, COMMAND)

    return cancel


async def key(database: Database) -> Repeat:
    async def issue() -> None:
        with suppress(IdempotencyKeyUsed):
            await api_keys.issue(database, NewApiKey("CRM"), key_id=AGAIN)

    return issue


def subscribing(database: Database) -> Endpoints:
    async def find_no_error(_: str) -> None:
        return None

    return Endpoints(database, SecretBox([new_encryption_key()]), find_no_error)


async def endpoint(database: Database) -> Repeat:
    endpoints = subscribing(database)
    return lambda: endpoints.add(EndpointConfig(NOWHERE), COMMAND, AGAIN)


async def removal(database: Database) -> Repeat:
    endpoints = subscribing(database)
    made = await endpoints.add(EndpointConfig(NOWHERE), COMMAND)

    async def remove() -> None:
        with suppress(UnknownEndpoint):
            await endpoints.remove(made.endpoint.id, COMMAND)

    return remove


async def project(database: Database) -> Repeat:
    async def add() -> None:
        with suppress(ProjectExists):
            await new_project(database)

    return add


async def person(database: Database) -> Repeat:
    office = open_office(database)

    async def add() -> None:
        with suppress(StaffExists):
            await office.add()

    return add


async def invitation(database: Database) -> Repeat:
    office = open_office(database)

    async def invite() -> None:
        with suppress(StaffExists):
            await office.staff.invite("nora@example.com", "Nora", Role.SALES, COMMAND)

    return invite


async def invitation_by_a_form(database: Database) -> Repeat:
    office = open_office(database)

    async def invite() -> None:
        with suppress(IdempotencyKeyUsed):
            await office.staff.invite("nora@example.com", "Nora", Role.SALES, COMMAND, AGAIN)

    return invite


async def reset(database: Database) -> Repeat:
    office = open_office(database)
    person = await office.add()
    seen = await office.staff.credentials_version(person.id)

    async def reset_as_seen() -> None:
        with suppress(IdempotencyKeyUsed):
            await office.staff.reset(person.id, COMMAND, seen)

    return reset_as_seen


async def rotation(database: Database) -> Repeat:
    endpoints = subscribing(database)
    made = (await endpoints.add(EndpointConfig(NOWHERE), COMMAND)).endpoint

    async def rotate() -> None:
        with suppress(IdempotencyKeyUsed):
            await endpoints.rotate(made.id, COMMAND, seen_secret_id=str(made.secret_id))

    return rotate


async def new_link(database: Database) -> Repeat:
    bookings, found = await held(database)

    async def reissue() -> None:
        with suppress(IdempotencyKeyUsed):
            await bookings.reissue_link(found, COMMAND, found.booking.link_version)

    return reissue


async def endpoint_for_another_url(database: Database) -> Repeat:
    endpoints = subscribing(database)
    await endpoints.add(EndpointConfig(NOWHERE), COMMAND, AGAIN)

    async def add_another() -> None:
        with suppress(IdempotencyKeyUsed):
            await endpoints.add(EndpointConfig(f"{NOWHERE}/other"), COMMAND, AGAIN)

    return add_another


async def sign_out(database: Database) -> Repeat:
    office = open_office(database)
    await office.add()
    opened = await office.sign_in()
    return lambda: office.login.sign_out(opened.token)


async def sign_out_everywhere(database: Database) -> Repeat:
    office = open_office(database)
    person = await office.add()
    return lambda: office.login.sign_out_everywhere(person.id)


REPEATED: list[Setup] = [put, bulk, only_if_new, keyed_hold, signature, key, endpoint, project, sign_out]
# These go the ways of the others.
ALSO_REPEATED: list[Setup] = [
    patch, own_hold, second_click, payment, cancellation, endpoint_for_another_url, removal, person,
    invitation, invitation_by_a_form, reset, rotation, new_link, sign_out_everywhere,
]  # fmt: skip
SETUPS = [*REPEATED, *(pytest.param(setup, marks=pytest.mark.slow) for setup in ALSO_REPEATED)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMAND_TIMEOUT_SECONDS", 0.5)
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.01)


async def until_known(database: Database) -> None:
    """Wait until the one connection that writes has the settings of the server."""

    async def is_known() -> bool:
        async with database.writing_autocommit() as connection:
            return bool(await connection.fetchval("show synchronous_standby_names") == "nobody")

    await eventually(is_known)


async def fails(repeat: Repeat) -> bool:
    try:
        await repeat()
    except DatabaseUnavailable:
        return True
    return False


@pytest.mark.parametrize("setup", SETUPS, ids=lambda setup: setup.__name__)
@pytest.mark.usefixtures("impatient")
async def test_what_is_acknowledged_again_waits_for_the_standby(setup: Setup, postgres_url: str) -> None:
    async with Database(postgres_url, writers=1) as database:
        repeat = await setup(database)
        await repeat()
        async with without_standby(postgres_url) as standby_is_back:
            await until_known(database)
            assert await fails(repeat)
            await standby_is_back()

            async def is_acknowledged() -> bool:
                return not await fails(repeat)

            await eventually(is_acknowledged)


@pytest.mark.usefixtures("impatient")
async def test_what_stands_beside_an_unknown_change_is_unknown_too(postgres_url: str) -> None:
    async with Database(postgres_url, writers=1) as database:
        project_id = await new_project(database)
        same = replacement(project_id, "A-1")
        await store(database, same)
        async with without_standby(postgres_url):
            await until_known(database)
            outcomes = await write(database, [same, replacement(project_id, "A-2")])
        assert all(isinstance(outcome, DatabaseUnavailable) for outcome in outcomes)
