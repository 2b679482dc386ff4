"""PUT, PATCH and GET of a unit: what is stored, what is answered, and on what conditions."""

import re
from collections.abc import Callable
from decimal import Decimal
from uuid import UUID

import pytest

from tests.support.backoffice import Desk
from tests.support.bodies import MEDIA, NULLABLE, REQUIRED, UNIT_FIELDS, full, minimal, without
from tests.support.client import Project, Unit, exact
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql
from tests.support.unit_rows import stored_version

MILLISECONDS_UTC = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
STRONG_ETAG = re.compile(r'"[\x21\x23-\x7e]+"')
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
METHODS = ["put", "patch"]
BODIES = {"put": full(type="villa"), "patch": {"type": "villa"}}


def test_a_new_unit_is_answered_whole_with_201(unit: Unit, feed: Feed) -> None:
    created = unit.put(full())
    assert (created.status_code, created.headers["content-type"]) == (201, "application/json")
    answer, project = exact(created), unit.project
    assert set(answer) == UNIT_FIELDS
    assert {name: answer[name] for name in full()} == full()
    assert (answer["projectId"], answer["projectSlug"]) == (project.id, project.slug)
    assert (answer["projectName"], answer["code"]) == (project.name, unit.code)
    assert str(UUID(answer["id"])) == answer["id"]
    assert 1 <= len(answer["ref"]) <= 20
    assert MILLISECONDS_UTC.fullmatch(answer["createdAt"])
    assert answer["updatedAt"] == answer["createdAt"]
    assert (answer["status"], answer["holdExpiresAt"]) == ("available", None)
    assert STRONG_ETAG.fullmatch(created.headers["etag"])
    assert (unit.get().text, unit.etag) == (created.text, created.headers["etag"])
    assert feed.of(unit) == []


@pytest.mark.parametrize("status", ["available", "unavailable"])
def test_a_new_unit_of_required_fields_may_name_its_status(unit: Unit, feed: Feed, status: str) -> None:
    answer = unit.create(minimal(status=status))
    assert answer["status"] == status
    assert {answer[name] for name in NULLABLE} == {None}
    assert [answer[name] for name in MEDIA] == [[], []]
    assert feed.of(unit) == []


def test_a_replacement_is_answered_with_200_and_clears_what_it_leaves_out(stored: Unit, sql: Sql) -> None:
    before, version = stored.get(), stored_version(sql, stored)
    after = stored.put(minimal(type="villa", status="unavailable"))
    assert after.status_code == 200
    for name in ("id", "ref", "createdAt"):
        assert after.json()[name] == before.json()[name]
    assert {after.json()[name] for name in NULLABLE} == {None}
    assert [after.json()[name] for name in MEDIA] == [[], []]
    assert after.json()["updatedAt"] > before.json()["updatedAt"]
    assert after.headers["etag"] != before.headers["etag"]
    assert stored_version(sql, stored) == version + 1
    assert stored.get().text == after.text


@pytest.mark.parametrize("name", [*NULLABLE, *MEDIA])
def test_null_clears_as_leaving_out_does(stored: Unit, name: str) -> None:
    empty: object = [] if name in MEDIA else None
    assert exact(stored.put(full(**{name: None})))[name] == empty
    stored.put(full())
    assert exact(stored.patch({name: None}))[name] == empty


@pytest.mark.parametrize("name", REQUIRED)
def test_a_required_field_can_neither_be_left_out_nor_be_null(stored: Unit, name: str) -> None:
    etag, unit = stored.etag, Unit(stored.http, stored.project, "A-102")
    invalid(unit.put(without(full(), name)), f"/{name}")
    invalid(unit.put(full(**{name: None})), f"/{name}")
    invalid(stored.patch({name: None, "bedrooms": 9}), f"/{name}")
    assert (unit.exists, stored.etag) == (False, etag)


@pytest.mark.parametrize("body", [full(), minimal(priceSar=0), full(status="available")])
def test_repeating_a_call_changes_nothing_at_all(unit: Unit, feed: Feed, body: dict[str, object]) -> None:
    first = unit.put(body)
    for again in (unit.put(body), unit.patch(body), unit.patch({})):
        assert (again.status_code, again.text) == (200, first.text)
        assert again.headers["etag"] == first.headers["etag"]
    assert feed.of(unit) == []


def test_the_same_value_written_differently_is_no_change(stored: Unit) -> None:
    named = {"url": "https://media.example/b.jpg", "name": "Plan"}
    etag = stored.put(full(priceSar=Decimal("1.50"), images=[named])).headers["etag"]
    turned = dict(reversed(named.items()))
    assert stored.put(full(priceSar=Decimal("1.5"), images=[turned])).headers["etag"] == etag
    assert stored.put(full(priceSar=Decimal("15e-1"), images=[named, named])).headers["etag"] != etag


def test_a_url_and_an_object_with_that_url_are_different(stored: Unit) -> None:
    for images in (["https://media.example"], [{"url": "https://media.example"}]):
        assert exact(stored.put(full(images=images)))["images"] == images


def test_units_of_other_projects_and_of_another_case_are_other_units(
    stored: Unit, new_project: Callable[[], Project]
) -> None:
    before = stored.read()
    for project, code in ((new_project(), stored.code), (stored.project, stored.code.lower())):
        assert Unit(stored.http, project, code).create(minimal())["ref"] != before["ref"]
    assert stored.read() == before


def test_numbers_are_exact_from_the_wire_to_the_column_and_back(unit: Unit, sql: Sql) -> None:
    """A float would hold neither."""
    price, area = Decimal("999999999999.99"), Decimal("0.0001")
    created = unit.create(full(priceSar=price, areaSqm=area, depositPercent=0))
    assert (created["priceSar"], created["areaSqm"], created["depositPercent"]) == (price, area, 0)
    row = sql.row("select price_sar, area_sqm from unit where id = $1", created["id"])
    assert (row["price_sar"], row["area_sqm"]) == (price, area)
    patched = exact(unit.patch('{"priceSar": 0.3, "areaSqm": 1.1, "bedrooms": 30e-1}'))
    assert (patched["priceSar"], patched["areaSqm"]) == (Decimal("0.3"), Decimal("1.1"))
    assert isinstance(patched["bedrooms"], int)


@pytest.mark.parametrize(("name", "value"), NEW_VALUES.items())
def test_a_patch_changes_only_the_field_in_its_body(stored: Unit, name: str, value: object) -> None:
    before, response = stored.read(), stored.patch({name: value})
    after = exact(response)
    assert (response.status_code, after[name]) == (200, value)
    assert without(after, name, "updatedAt") == without(before, name, "updatedAt")
    assert (stored.get().text, stored.etag) == (response.text, response.headers["etag"])


def test_status_and_fields_change_together(stored: Unit, sql: Sql, feed: Feed) -> None:
    version = stored_version(sql, stored)
    answer = exact(stored.patch({"status": "unavailable", "bedrooms": 9}))
    assert (answer["status"], answer["bedrooms"]) == ("unavailable", 9)
    assert (stored_version(sql, stored), feed.types_of(stored)) == (version + 1, ["unit.unavailable"])


def test_a_refused_call_names_every_fault_and_changes_nothing(stored: Unit, desk: Desk, feed: Feed) -> None:
    desk.held(stored)
    before, told = stored.get(), feed.types_of(stored)
    conflict(stored.patch({"bedrooms": 9, "priceSar": 1}), "terms-locked", "held", "priceSar")
    wrong = {"type": "", "priceSar": "1", "colour": 1, "status": "gone", "files": [{}]}
    pointers = ("/type", "/priceSar", "/colour", "/status", "/files/0/url")
    invalid(stored.patch(wrong), *pointers)
    invalid(stored.put(full(**wrong)), *pointers)
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])
    assert feed.types_of(stored) == told


def test_faults_of_the_path_and_of_the_body_come_together(unit: Unit) -> None:
    url = f"/v1/integration/projects/Not_A_Slug/units/{'x' * 51}"
    response = unit.http.put(url, json={"type": "flat", "areaSqm": 1, "priceSar": -1})
    invalid(response, "/path/slug", "/path/code", "/priceSar")


def test_what_is_unknown_is_neither_read_nor_patched_nor_made(unit: Unit) -> None:
    nowhere = Unit(unit.http, Project("", "no-such-tower", ""), unit.code)
    for response in (unit.get(), unit.patch({"bedrooms": 3}), unit.patch({})):
        assert problem(response, 404)["type"] == "/problems/unknown-unit"
    for response in (nowhere.get(), nowhere.put(minimal()), nowhere.patch({})):
        assert problem(response, 404)["type"] == "/problems/unknown-project"
    assert not unit.exists


def test_a_unit_that_was_read_can_be_put_back_without_its_status(stored: Unit) -> None:
    before = stored.get()
    sent = without(exact(before), "status")
    again = stored.put(sent)
    assert (again.text, again.headers["etag"]) == (before.text, before.headers["etag"])
    after = exact(stored.put(sent | {"description": "Repainted."}))
    moved = {"description": "Repainted.", "updatedAt": after["updatedAt"]}
    assert after == exact(before) | moved


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("id", ["7d9f3c1e-0000-4000-8000-000000000000", "nonsense", 5]),
        ("code", ["A-102", "a-101", 101]),
        ("projectId", ["7d9f3c1e-0000-4000-8000-000000000000"]),
        ("projectSlug", ["another-tower"]),
    ],
)
def test_only_its_own_identity_may_be_sent_back(stored: Unit, name: str, values: list[object]) -> None:
    own, etag = stored.read()[name], stored.etag
    assert stored.put(full(**{name: own})).status_code == 200
    assert stored.patch({name: own}).status_code == 200
    for value in values:
        invalid(stored.put(full(type="villa", **{name: value})), f"/{name}")
        invalid(stored.patch({"type": "villa", name: value}), f"/{name}")
    assert stored.etag == etag


def test_a_new_unit_cannot_take_the_id_of_another(stored: Unit) -> None:
    neighbour = Unit(stored.http, stored.project, "A-102")
    invalid(neighbour.put(minimal(id=stored.read()["id"])), "/id")
    assert not neighbour.exists


def test_what_the_service_alone_decides_is_ignored(stored: Unit) -> None:
    before = stored.get()
    for value in ("2020-01-01T00:00:00.000Z", None, 5, ["x"]):
        own = dict.fromkeys(("holdExpiresAt", "createdAt", "updatedAt", "projectName", "ref"), value)
        assert stored.put(full(**own)).text == stored.patch(own).text == before.text


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ["{etag}", '"nonsense", {etag}', "*"])
def test_an_etag_that_matches_lets_the_change_through(stored: Unit, method: str, form: str) -> None:
    condition = form.replace("{etag}", stored.etag)
    response = getattr(stored, method)(BODIES[method], If_Match=condition)
    assert (response.status_code, stored.read()["type"]) == (200, "villa")


@pytest.mark.parametrize("method", METHODS)
def test_an_etag_that_does_not_match_stops_the_change(stored: Unit, method: str) -> None:
    stale = stored.etag
    stored.patch({"bedrooms": 9})
    before = stored.get()
    weak = f"W/{before.headers['etag']}"
    for condition in ('"nonsense"', weak, '"a", "b"', '""', stale, "nonsense", '"open', ""):
        problem(getattr(stored, method)(BODIES[method], If_Match=condition), 412)
    for condition in ("*", before.headers["etag"]):
        problem(getattr(stored, method)(BODIES[method], If_None_Match=condition), 412)
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])
    assert getattr(stored, method)(BODIES[method], If_None_Match='"another"').status_code == 200
    # Even if nothing would change.
    problem(getattr(stored, method)(BODIES[method], If_Match=stale), 412)


def test_a_unit_that_does_not_exist_matches_nothing_and_is_created_unless_it_exists(unit: Unit) -> None:
    for condition in ('"nonsense"', "*"):
        problem(unit.put(minimal(), If_Match=condition), 412)
    assert not unit.exists
    assert unit.put(minimal(), If_None_Match="*").status_code == 201


def test_a_reader_is_spared_what_it_has(stored: Unit) -> None:
    etag = stored.etag
    for known in (etag, f"W/{etag}", f'"another", {etag}', "*"):
        response = stored.get(If_None_Match=known)
        assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)
    stored.patch({"bedrooms": 9})
    assert stored.get(If_None_Match=etag).status_code == 200
