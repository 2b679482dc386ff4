"""The demo project is one that a client could have sent."""

import re
from collections import Counter

import pytest

from holdfast.demo.project import EXAMPLE_PATH, EXAMPLE_PRICE_PATH, NAME, SLUG, demo_units
from holdfast.demo.seed import (
    CANCELLED,
    EMAIL,
    KEY_NAME,
    OFF_SALE,
    REFUND_DUE,
    RESERVED,
    SOLD,
    WALK_IN,
    seed_demo,
)
from holdfast.domain.api_key import Scope
from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import BookingStatus
from holdfast.domain.errors import LoginFailed
from holdfast.domain.holds import HoldLimits, HoldPeriods
from holdfast.domain.permissions import Role
from holdfast.domain.status import Status
from holdfast.domain.unit import Unit
from holdfast.operations import api_keys
from holdfast.operations.bookings import Bookings
from holdfast.operations.projects import add_project
from holdfast.operations.units import PatchUnit, ReplaceUnit, Units
from holdfast.storage.database import Database
from holdfast.web.api.unit_bodies import UnitReplacement, UnitValues, check_unit
from holdfast.web.json import camel_case, encode, value_at
from holdfast.web.pages.i18n import in_language
from holdfast.web.pages.templates import STATIC
from tests.support.staff import open_office

UNITS = list(demo_units())


def test_it_has_about_120_units_over_a_dozen_floors() -> None:
    codes = [unit.code for unit in UNITS]
    assert len(set(codes)) == len(codes)
    assert 110 <= len(codes) <= 130
    assert all(re.fullmatch(r"[AB]-\d{4}", code) for code in codes)
    assert {int(code[2:4]) for code in codes} == set(range(1, 13))


def test_every_unit_is_one_that_a_put_would_accept_and_keep_as_it_is() -> None:
    for unit in UNITS:
        body = {camel_case(name): value for name, value in unit.fields._asdict().items()}
        sent, _ = value_at(encode(body).decode(), 0)
        checked = check_unit(UnitReplacement, sent, SLUG, unit.code)
        assert isinstance(checked, UnitValues), checked
        assert checked.replacement() == unit.fields


def test_a_few_penthouses_are_not_on_sale() -> None:
    off_sale = [unit.fields.type for unit in UNITS if unit.status is Status.UNAVAILABLE]
    assert off_sale == ["Penthouse | بنتهاوس"] * 4


def test_every_text_is_in_english_and_in_arabic() -> None:
    for text in (NAME, *(text for unit in UNITS for text in (unit.fields.type, unit.fields.description))):
        assert text is not None
        english, arabic = in_language(text, "en"), in_language(text, "ar")
        assert english.isascii() or "m²" in english
        assert text in (f"{english} | {arabic}", f"{english}\n{arabic}")


def test_every_drawing_is_a_file_of_the_server() -> None:
    base = "https://units.example.com"
    for unit in demo_units(base):
        for medium in (*unit.fields.images, *unit.fields.files):
            assert not isinstance(medium, str)
            path = str(medium["url"]).removeprefix(f"{base}/static/")
            assert (STATIC / path).is_file(), path


async def test_it_has_a_past_with_something_of_every_kind(database: Database) -> None:
    await seed_demo(database)
    units = await _units(database)
    assert Counter(unit.status for unit in units) == {
        Status.AVAILABLE: 81,
        Status.SOLD: len(SOLD) + len(WALK_IN),
        Status.RESERVED: len(RESERVED),
        Status.UNAVAILABLE: 4 + len(OFF_SALE),
    }
    inventory = Units(database)
    found = await Bookings(database, inventory, HoldPeriods(), HoldLimits()).page(None, None, None, None, 100)
    await inventory.close()
    assert Counter(one.booking.status for one in found) == {
        BookingStatus.SOLD: len(SOLD) + len(WALK_IN),
        BookingStatus.RESERVED: len(RESERVED),
        BookingStatus.CANCELLED: len(CANCELLED),
        BookingStatus.REFUND_DUE: len(REFUND_DUE),
    }


async def test_the_next_start_leaves_everything_as_it_is(database: Database) -> None:
    await seed_demo(database)
    inventory = Units(database)
    project_id = await inventory.project_id(SLUG)
    # One that has a past, and one that has none: a visitor has changed both.
    for code, changes in ((SOLD[0], {"description": "mine"}), ("A-0601", {"images": ()})):
        await inventory.write(PatchUnit((project_id, code), changes))
    await inventory.close()
    before = await _units(database)
    await seed_demo(database)
    assert await _units(database) == before


async def test_what_an_interrupted_start_left_out_is_made_up_for(database: Database) -> None:
    await add_project(database, SLUG, NAME)
    inventory = Units(database)
    project_id, first = await inventory.project_id(SLUG), UNITS[0]
    await inventory.write(ReplaceUnit((project_id, first.code), first.fields))
    await inventory.close()
    await seed_demo(database)
    units = await _units(database)
    assert len(units) == len(UNITS)
    assert {unit.code: unit.status for unit in units}[first.code] is Status.SOLD


async def test_drawings_are_where_the_server_is_now(database: Database) -> None:
    await seed_demo(database, "http://127.0.0.1:8000")
    await seed_demo(database, "https://demo.example.com")
    for unit in await _units(database):
        for medium in (*unit.fields.images, *unit.fields.files):
            assert not isinstance(medium, str)
            assert str(medium["url"]).startswith("https://demo.example.com/static/demo/")


async def _units(database: Database) -> list[Unit]:
    inventory = Units(database)
    units, _ = await inventory.page(SLUG, "", 1000, None, None)
    await inventory.close()
    return units


def test_the_example_overwrites_no_unit_of_the_demo() -> None:
    assert EXAMPLE_PATH.split("/units/")[0].endswith(f"/{SLUG}")
    assert EXAMPLE_PATH.rpartition("/")[2] not in {unit.code for unit in UNITS}


def test_the_example_of_a_price_is_about_a_unit_that_nobody_has() -> None:
    code = EXAMPLE_PRICE_PATH.rpartition("/")[2]
    assert code in {unit.code for unit in UNITS}
    assert code not in (*SOLD, *WALK_IN, *RESERVED)


async def test_its_key_opens_the_integration_api_and_the_back_office_until_the_next_start(
    database: Database,
) -> None:
    first, second = await seed_demo(database), await seed_demo(database)
    assert first.key != second.key
    keys = [key for key in await api_keys.list_all(database) if key.name == KEY_NAME]
    assert [key.scopes for key in keys] == [frozenset({Scope.INTEGRATION, Scope.BACKOFFICE})] * 2
    assert sorted(key.revoked_at is None for key in keys) == [False, True]


async def test_its_admin_has_a_new_password_at_each_start_and_the_last_ones_sessions_end(
    database: Database,
) -> None:
    office = open_office(database)
    first = await seed_demo(database)
    opened = await office.sign_in(EMAIL, password=first.password)
    assert opened.staff.role is Role.ADMIN
    second = await seed_demo(database)
    assert not await office.is_signed_in(opened)
    with pytest.raises(LoginFailed):
        await office.sign_in(EMAIL, password=first.password)
    assert await office.sign_in(EMAIL, password=second.password)


async def test_its_admin_is_one_again_whatever_a_visitor_has_made_of_them(database: Database) -> None:
    office = open_office(database)
    password = (await seed_demo(database)).password
    opened = await office.sign_in(EMAIL, password=password)
    await office.set_up_factor(await office.oneself(opened), password)
    await office.add("other@example.com")
    await office.staff.change(opened.staff.id, {"role": Role.VIEWER, "disabled": True}, COMMAND)
    again = await office.sign_in(EMAIL, password=(await seed_demo(database)).password)
    assert (again.staff.role, again.staff.has_second_factor) == (Role.ADMIN, False)
