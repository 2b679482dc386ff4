"""PUT creates or replaces a whole unit."""

import re
from collections.abc import Callable
from uuid import UUID

import pytest

from tests.support import states
from tests.support.bodies import MEDIA, NULLABLE, REQUIRED, UNIT_FIELDS, full, minimal, without
from tests.support.client import Project, Unit, exact, number
from tests.support.feed import Feed
from tests.support.problems import invalid
from tests.support.sql import Sql

MILLISECONDS_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]+"')


def test_a_new_unit_is_created_with_201(unit: Unit) -> None:
    assert unit.put(minimal()).status_code == 201


def test_an_existing_unit_is_replaced_with_200(stored: Unit) -> None:
    assert stored.put(full(type="villa")).status_code == 200


def test_the_answer_is_the_whole_unit_and_nothing_else(unit: Unit) -> None:
    assert set(unit.create(full())) == UNIT_FIELDS


def test_the_answer_is_json(unit: Unit) -> None:
    assert unit.put(full()).headers["content-type"].split(";")[0] == "application/json"


def test_every_field_that_was_sent_comes_back_as_sent(unit: Unit) -> None:
    answer = unit.create(full())
    assert {name: answer[name] for name in full()} == full()


def test_absent_values_are_null_and_absent_media_are_empty(unit: Unit) -> None:
    answer = unit.create(minimal())
    assert {answer[name] for name in NULLABLE} == {None}
    assert [answer[name] for name in MEDIA] == [[], []]


def test_a_new_unit_without_a_status_is_available(unit: Unit) -> None:
    assert unit.create(minimal())["status"] == "available"


@pytest.mark.parametrize("status", ["available", "unavailable"])
def test_a_new_unit_may_name_its_status(unit: Unit, status: str) -> None:
    assert unit.create(minimal(status=status))["status"] == status


@pytest.mark.parametrize("status", ["available", "unavailable"])
def test_creation_is_no_event(unit: Unit, feed: Feed, status: str) -> None:
    unit.create(minimal(status=status))
    assert feed.of(unit) == []


def test_the_unit_knows_its_project_and_code(unit: Unit) -> None:
    answer = unit.create(minimal())
    project = unit.project
    assert (answer["projectId"], answer["projectSlug"]) == (project.id, project.slug)
    assert (answer["projectName"], answer["code"]) == (project.name, unit.code)


def test_the_id_is_a_uuid_and_the_ref_is_short(unit: Unit) -> None:
    answer = unit.create(minimal())
    assert str(UUID(answer["id"])) == answer["id"]
    assert 1 <= len(answer["ref"]) <= 20


def test_times_are_utc_in_milliseconds(unit: Unit) -> None:
    answer = unit.create(minimal())
    assert MILLISECONDS_UTC.fullmatch(answer["createdAt"])
    assert answer["updatedAt"] == answer["createdAt"]
    assert answer["holdExpiresAt"] is None


def test_id_ref_and_creation_time_survive_a_replacement(stored: Unit) -> None:
    before = stored.read()
    after = exact(stored.put(minimal(type="villa")))
    assert [after[name] for name in ("id", "ref", "createdAt")] == [
        before[name] for name in ("id", "ref", "createdAt")
    ]


def test_two_units_have_different_refs(stored: Unit) -> None:
    neighbour = Unit(stored.http, stored.project, "A-102")
    assert neighbour.create(minimal())["ref"] != stored.read()["ref"]


@pytest.mark.parametrize("name", NULLABLE)
def test_an_omitted_optional_field_is_cleared(stored: Unit, name: str) -> None:
    answer = exact(stored.put(without(full(), name)))
    assert answer[name] is None
    assert stored.read()[name] is None


@pytest.mark.parametrize("name", MEDIA)
def test_omitted_media_are_emptied(stored: Unit, name: str) -> None:
    assert exact(stored.put(without(full(), name)))[name] == []


@pytest.mark.parametrize("name", [*NULLABLE, *MEDIA])
def test_null_clears_as_leaving_out_does(stored: Unit, name: str) -> None:
    answer = exact(stored.put(full(**{name: None})))
    assert answer[name] == ([] if name in MEDIA else None)


def test_media_are_replaced_wholesale(stored: Unit) -> None:
    images = [{"url": "https://media.example/only.jpg", "name": "Only"}]
    assert exact(stored.put(full(images=images)))["images"] == images


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_field_cannot_be_left_out(unit: Unit, name: str) -> None:
    invalid(unit.put(without(full(), name)), f"/{name}")
    assert not unit.exists


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_field_cannot_be_null(unit: Unit, name: str) -> None:
    invalid(unit.put(full(**{name: None})), f"/{name}")


def test_what_was_put_is_what_get_gives_back(unit: Unit) -> None:
    assert unit.put(full()).text == unit.get().text


def test_put_and_get_agree_on_the_etag(unit: Unit) -> None:
    etag = unit.put(full()).headers["etag"]
    assert STRONG_ETAG.fullmatch(etag)
    assert unit.etag == etag


def test_a_change_moves_etag_and_updated_at(stored: Unit) -> None:
    before = stored.get()
    after = stored.put(full(description="Repainted."))
    assert after.headers["etag"] != before.headers["etag"]
    assert after.json()["updatedAt"] > before.json()["updatedAt"]


def test_the_version_is_one_more_for_each_change(stored: Unit, sql: Sql) -> None:
    before = states.version(sql, stored)
    stored.put(full(type="villa", status="unavailable", priceSar=1))
    assert states.version(sql, stored) == before + 1


@pytest.mark.parametrize("body", [full(), minimal(), full(status="available"), minimal(priceSar=0)])
def test_repeating_a_call_changes_nothing_at_all(unit: Unit, feed: Feed, body: dict[str, object]) -> None:
    first = unit.put(body)
    second = unit.put(body)
    assert (second.status_code, second.text) == (200, first.text)
    assert second.headers["etag"] == first.headers["etag"]
    assert feed.of(unit) == []


def test_the_same_code_in_two_projects_is_two_units(stored: Unit, new_project: Callable[[], Project]) -> None:
    elsewhere = Unit(stored.http, new_project(), stored.code)
    assert elsewhere.put(minimal()).status_code == 201
    assert stored.read()["bedrooms"] == full()["bedrooms"]


def test_codes_are_case_sensitive(stored: Unit) -> None:
    assert Unit(stored.http, stored.project, stored.code.lower()).put(minimal()).status_code == 201


def test_a_deposit_of_nothing_is_not_the_same_as_none(unit: Unit) -> None:
    assert number(unit.create(minimal(depositPercent=0))["depositPercent"]) == 0
