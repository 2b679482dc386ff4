"""The demo project is one that a client could have sent."""

import re

import pytest

from holdfast.demo import EMAIL, EXAMPLE_PATH, KEY_NAME, SLUG, demo_units, fill
from holdfast.domain.access import Scope
from holdfast.domain.audit import COMMAND
from holdfast.domain.permissions import Role
from holdfast.domain.refusals import SignInRefused
from holdfast.domain.status import Status
from holdfast.operations.administering import list_keys
from holdfast.storage.database import Database
from holdfast.web.json_items import value_at
from holdfast.web.unit_bodies import REPLACE, CheckedBody, check
from holdfast.web.wire import camel_case, encode
from tests.support.staffing import open_office

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
        checked = check(REPLACE, sent, SLUG, unit.code)
        assert isinstance(checked, CheckedBody), checked
        assert checked.fields() == unit.fields


def test_a_few_penthouses_are_not_on_sale() -> None:
    off_sale = [unit.fields.type for unit in UNITS if unit.status is Status.UNAVAILABLE]
    assert off_sale == ["Penthouse"] * 4


def test_the_example_overwrites_no_unit_of_the_demo() -> None:
    assert EXAMPLE_PATH.split("/units/")[0].endswith(f"/{SLUG}")
    assert EXAMPLE_PATH.rpartition("/")[2] not in {unit.code for unit in UNITS}


async def test_its_key_opens_the_integration_api_and_the_back_office_until_the_next_start(
    database: Database,
) -> None:
    first, second = await fill(database), await fill(database)
    assert first.key != second.key
    keys = [key for key in await list_keys(database) if key.name == KEY_NAME]
    assert [key.scopes for key in keys] == [frozenset({Scope.INTEGRATION, Scope.BACKOFFICE})] * 2
    assert sorted(key.revoked_at is None for key in keys) == [False, True]


async def test_its_admin_has_a_new_password_at_each_start_and_the_last_ones_sessions_end(
    database: Database,
) -> None:
    office = open_office(database)
    first = await fill(database)
    opened = await office.sign_in(EMAIL, password=first.password)
    assert opened.staff.role is Role.ADMIN
    second = await fill(database)
    assert not await office.is_signed_in(opened)
    with pytest.raises(SignInRefused):
        await office.sign_in(EMAIL, password=first.password)
    assert await office.sign_in(EMAIL, password=second.password)


async def test_its_admin_is_one_again_whatever_a_visitor_has_made_of_them(database: Database) -> None:
    office = open_office(database)
    password = (await fill(database)).password
    opened = await office.sign_in(EMAIL, password=password)
    await office.set_up_factor(await office.oneself(opened), password)
    await office.add("other@example.com")
    await office.staffing.change(opened.staff.id, {"role": Role.VIEWER, "disabled": True}, COMMAND)
    again = await office.sign_in(EMAIL, password=(await fill(database)).password)
    assert (again.staff.role, again.staff.has_second_factor) == (Role.ADMIN, False)
