"""What was signed for is read back exactly, whatever becomes of the unit and the project."""

from decimal import Decimal

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import WORDING, Agreement
from holdfast.domain.transitions import Caller
from holdfast.operations.units import PatchUnit, ReplaceUnit
from holdfast.storage.database import Database
from tests.support.booking_commands import confirm_deposit, sign_booking
from tests.support.inventory import fields
from tests.support.sales import BUYER, PERIODS, cancellation, done, found, hold, new_units, stored

KEY_CODE = "A-1"


async def change_project(database: Database, name: str) -> None:
    async with database.writing() as connection:
        await connection.execute("update project set name = $1, turn = turn + 1", name)


@pytest.mark.parametrize("area", ["0.0001", "120.5", "9999999.9999", "120", "1E+2"])
async def test_an_agreement_is_read_back_exactly(database: Database, area: str) -> None:
    key = (await new_units(database, KEY_CODE), KEY_CODE)
    described = fields()._replace(
        type="3-bedroom apartment | شقة بثلاث غرف",
        area_sqm=Decimal(area),
        bedrooms=3,
        bathrooms=0,
        delivery_year=2028,
    )
    await done(database, ReplaceUnit(key, described, None))
    await change_project(database, 'Narjis "Heights" | مرتفعات النرجس \\ 😀')
    booking = await hold(database, key)
    signed = (await done(database, sign_booking(key, COMMAND, booking.number, BUYER, "ar"))).booking
    agreement = Agreement(
        'Narjis "Heights" | مرتفعات النرجس \\ 😀', described.type, Decimal(area), 3, 0, 2028, "ar", WORDING
    )
    assert signed.agreement == agreement
    kept = (await stored(database, booking)).agreement
    assert kept == agreement
    assert isinstance(kept.area_sqm, Decimal)


async def test_what_is_not_known_of_a_unit_stays_unknown(database: Database) -> None:
    key = (await new_units(database, KEY_CODE), KEY_CODE)
    booking = await hold(database, key)
    assert booking.agreement is None
    await done(database, sign_booking(key, COMMAND, booking.number, BUYER))
    agreement = (await stored(database, booking)).agreement
    assert agreement is not None
    assert (agreement.bedrooms, agreement.bathrooms, agreement.delivery_year) == (None, None, None)
    assert agreement.language == "en"


async def test_later_changes_do_not_touch_what_was_signed(database: Database) -> None:
    key = (await new_units(database, KEY_CODE), KEY_CODE)
    booking = await hold(database, key)
    signed = (await done(database, sign_booking(key, COMMAND, booking.number, BUYER))).booking
    await done(database, PatchUnit(key, {"area_sqm": Decimal(1), "type": "cupboard", "bedrooms": 9}))
    await change_project(database, "Another Name")
    paid = confirm_deposit(key, COMMAND, booking.number, Caller.PAYMENT_SYSTEM, PERIODS, "pay_1")
    await done(database, paid)
    assert (await found(database, booking)).agreement == signed.agreement
    await done(database, cancellation(key, booking))
    kept = await stored(database, booking)
    assert (kept.agreement, kept.payment_id) == (signed.agreement, "pay_1")


@pytest.mark.parametrize("payment_id", ["pay_123", "!~" * 100, "0", "ch_3/A=="])
async def test_a_payment_is_read_back_as_it_was_told(database: Database, payment_id: str) -> None:
    key = (await new_units(database, KEY_CODE), KEY_CODE)
    booking = await hold(database, key)
    await done(database, sign_booking(key, COMMAND, booking.number, BUYER))
    told = confirm_deposit(key, COMMAND, booking.number, Caller.PAYMENT_SYSTEM, PERIODS, payment_id)
    assert (await done(database, told)).booking == await stored(database, booking)
    assert (await stored(database, booking)).payment_id == payment_id
