"""PATCH changes what the body names, and nothing else."""

from decimal import Decimal

import pytest

from tests.support import states
from tests.support.bodies import MEDIA, NULLABLE, REQUIRED, full, without
from tests.support.client import Unit, exact
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql

NEW_VALUES = {
    "type": "villa",
    "areaSqm": Decimal("300.25"),
    "priceSar": Decimal("1200000.5"),
    "vatIncluded": True,
    "vatRate": 5,
    "depositPercent": 10,
    "bedrooms": 0,
    "bathrooms": 1,
    "deliveryYear": 2030,
    "floor": -9,
    "description": "",
    "images": [],
    "files": ["https://media.example/new.pdf"],
    "status": "unavailable",
}


@pytest.mark.parametrize(("name", "value"), NEW_VALUES.items())
def test_only_the_field_in_the_body_changes(stored: Unit, name: str, value: object) -> None:
    before = stored.read()
    after = exact(stored.patch({name: value}))
    assert after[name] == value
    assert without(after, name, "updatedAt") == without(before, name, "updatedAt")
    assert stored.read() == after


def test_the_answer_is_200_with_the_whole_unit_and_its_etag(stored: Unit) -> None:
    response = stored.patch({"bedrooms": 4})
    assert (response.status_code, response.text) == (200, stored.get().text)
    assert response.headers["etag"] == stored.etag


def test_an_empty_object_changes_and_bumps_nothing(stored: Unit, sql: Sql, feed: Feed) -> None:
    before, version = stored.get(), states.version(sql, stored)
    response = stored.patch({})
    assert (response.status_code, response.text) == (200, before.text)
    assert response.headers["etag"] == before.headers["etag"]
    assert (states.version(sql, stored), feed.of(stored)) == (version, [])


@pytest.mark.parametrize("body", [{"priceSar": full()["priceSar"]}, {"images": full()["images"]}, full()])
def test_unchanged_values_bump_nothing(stored: Unit, body: dict[str, object]) -> None:
    before = stored.get()
    after = stored.patch(body)
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])


@pytest.mark.parametrize("name", [*NULLABLE, *MEDIA])
def test_null_clears_an_optional_field(stored: Unit, name: str) -> None:
    assert exact(stored.patch({name: None}))[name] == ([] if name in MEDIA else None)


@pytest.mark.parametrize("name", [*REQUIRED, "status"])
def test_null_is_refused_on_a_required_field(stored: Unit, name: str) -> None:
    etag = stored.etag
    invalid(stored.patch({name: None, "bedrooms": 9}), f"/{name}")
    assert stored.etag == etag


def test_an_unknown_unit_cannot_be_patched_nor_is_it_made(unit: Unit) -> None:
    problem(unit.patch({"bedrooms": 3}), 404)
    problem(unit.patch({}), 404)
    assert not unit.exists


def test_every_fault_is_reported_at_once(stored: Unit) -> None:
    body = {"type": "", "priceSar": "1", "colour": 1, "status": "gone", "files": [{}]}
    invalid(stored.patch(body), "/type", "/priceSar", "/colour", "/status", "/files/0/url")


def test_a_refused_patch_changes_no_field_at_all(stored: Unit, sql: Sql) -> None:
    states.hold(sql, stored)
    before = stored.get()
    conflict(stored.patch({"bedrooms": 9, "priceSar": 1}), "terms-locked", "held", "priceSar")
    invalid(stored.patch({"bedrooms": 9, "areaSqm": -1}), "/areaSqm")
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])


def test_status_and_fields_change_together(stored: Unit, sql: Sql, feed: Feed) -> None:
    version = states.version(sql, stored)
    answer = exact(stored.patch({"status": "unavailable", "bedrooms": 9}))
    assert (answer["status"], answer["bedrooms"]) == ("unavailable", 9)
    assert states.version(sql, stored) == version + 1
    assert feed.types_of(stored) == ["unit.unavailable"]
