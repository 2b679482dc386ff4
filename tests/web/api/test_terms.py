"""While a buyer is mid-booking the terms stand still."""

from decimal import Decimal

import pytest

from tests.support import states
from tests.support.bodies import TERMS, full, without
from tests.support.client import Unit, exact
from tests.support.problems import conflict
from tests.support.sql import Sql

MID_BOOKING = ["held", "reserved"]
OTHERS = {"priceSar": 1, "depositPercent": 50, "vatIncluded": True, "vatRate": 5}
CLEARABLE = ["depositPercent", "vatIncluded", "vatRate"]


@pytest.fixture(params=MID_BOOKING)
def booked(request: pytest.FixtureRequest, stored: Unit, sql: Sql) -> Unit:
    states.bring_to(sql, stored, request.param)
    return stored


def status_of(unit: Unit) -> str:
    return str(unit.read()["status"])


@pytest.mark.parametrize("name", TERMS)
def test_a_put_cannot_change_a_term(booked: Unit, name: str) -> None:
    before = booked.get()
    response = booked.put(full(type="villa", **{name: OTHERS[name]}))
    conflict(response, "terms-locked", status_of(booked), name)
    assert (booked.get().text, booked.etag) == (before.text, before.headers["etag"])


@pytest.mark.parametrize("name", TERMS)
def test_a_patch_cannot_change_a_term(booked: Unit, name: str) -> None:
    before = booked.get()
    response = booked.patch({"description": "Repainted.", name: OTHERS[name]})
    conflict(response, "terms-locked", status_of(booked), name)
    assert (booked.get().text, booked.etag) == (before.text, before.headers["etag"])


def test_every_offending_term_is_named(booked: Unit) -> None:
    conflict(booked.put(full(**OTHERS)), "terms-locked", status_of(booked), *TERMS)
    conflict(booked.patch(OTHERS), "terms-locked", status_of(booked), *TERMS)


@pytest.mark.parametrize("name", CLEARABLE)
def test_a_put_cannot_clear_a_term_by_leaving_it_out(booked: Unit, name: str) -> None:
    conflict(booked.put(without(full(), name)), "terms-locked", status_of(booked), name)


@pytest.mark.parametrize("name", CLEARABLE)
def test_no_call_can_clear_a_term_by_null(booked: Unit, name: str) -> None:
    conflict(booked.put(full(**{name: None})), "terms-locked", status_of(booked), name)
    conflict(booked.patch({name: None}), "terms-locked", status_of(booked), name)


def test_a_put_with_the_stored_terms_is_fine(booked: Unit) -> None:
    assert exact(booked.put(full(type="villa")))["type"] == "villa"


@pytest.mark.parametrize("name", TERMS)
def test_a_patch_with_a_stored_term_is_fine(booked: Unit, name: str) -> None:
    answer = booked.patch({name: full()[name], "type": "villa"})
    assert (answer.status_code, answer.json()["type"]) == (200, "villa")


def test_the_same_value_written_differently_is_no_change_of_terms(booked: Unit) -> None:
    body = full(depositPercent=Decimal("2.5000"), vatRate=Decimal("1.5e1"), priceSar=Decimal("950000.00"))
    assert booked.put(body).status_code == 200


def test_fields_that_are_no_terms_may_change(booked: Unit) -> None:
    answer = exact(booked.patch({"areaSqm": 99, "bedrooms": None, "images": []}))
    assert (answer["areaSqm"], answer["bedrooms"], answer["images"]) == (99, None, [])


def test_absent_terms_may_stay_absent(unit: Unit, sql: Sql) -> None:
    body = without(full(), *CLEARABLE)
    unit.create(body)
    states.hold(sql, unit)
    assert unit.put(body | {"type": "villa"}).status_code == 200
    conflict(unit.put(full()), "terms-locked", "held", *CLEARABLE)


def test_setting_an_absent_term_to_zero_is_a_change(unit: Unit, sql: Sql) -> None:
    unit.create(without(full(), "depositPercent"))
    states.reserve(sql, unit)
    conflict(unit.patch({"depositPercent": 0}), "terms-locked", "reserved", "depositPercent")


def test_a_refusal_by_a_hold_tells_when_it_ends(stored: Unit, sql: Sql) -> None:
    states.hold(sql, stored, expires_in=120)
    response = stored.patch({"priceSar": 1})
    assert conflict(response, "terms-locked", "held")["holdExpiresAt"] == stored.read()["holdExpiresAt"]
    assert 1 <= int(response.headers["retry-after"]) <= 121


@pytest.mark.parametrize("name", TERMS)
def test_on_a_sold_unit_the_terms_may_change(stored: Unit, sql: Sql, name: str) -> None:
    states.sell(sql, stored)
    assert exact(stored.put(full(**{name: OTHERS[name]})))[name] == OTHERS[name]
    assert exact(stored.patch({name: full()[name]}))[name] == full()[name]


def test_a_held_unit_read_and_put_back_without_status_is_fine(booked: Unit) -> None:
    before = booked.get()
    after = booked.put(without(exact(before), "status"))
    assert (after.status_code, after.text) == (200, before.text)
