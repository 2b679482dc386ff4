"""If-Match and If-None-Match."""

import pytest

from tests.support import states
from tests.support.bodies import full, minimal
from tests.support.client import Unit
from tests.support.problems import problem
from tests.support.sql import Sql

METHODS = ["put", "patch"]
BODIES = {"put": full(type="villa"), "patch": {"type": "villa"}}


@pytest.mark.parametrize("method", METHODS)
def test_a_matching_etag_lets_the_change_through(stored: Unit, method: str) -> None:
    response = getattr(stored, method)(BODIES[method], If_Match=stored.etag)
    assert (response.status_code, stored.read()["type"]) == (200, "villa")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("form", ['"nonsense"', "W/{etag}", '"a", "b"', '""'])
def test_an_etag_that_does_not_match_stops_the_change(stored: Unit, method: str, form: str) -> None:
    before = stored.get()
    response = getattr(stored, method)(
        BODIES[method], If_Match=form.replace("{etag}", before.headers["etag"])
    )
    problem(response, 412)
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])


@pytest.mark.parametrize("method", METHODS)
def test_an_older_etag_does_not_match(stored: Unit, method: str) -> None:
    stale = stored.etag
    stored.patch({"bedrooms": 9})
    problem(getattr(stored, method)(BODIES[method], If_Match=stale), 412)


@pytest.mark.parametrize("method", METHODS)
def test_an_older_etag_does_not_match_even_if_nothing_would_change(stored: Unit, method: str) -> None:
    stale = stored.etag
    stored.patch({"type": "villa"})
    problem(getattr(stored, method)(BODIES[method], If_Match=stale), 412)


@pytest.mark.parametrize("method", METHODS)
def test_one_of_several_etags_is_enough(stored: Unit, method: str) -> None:
    response = getattr(stored, method)(BODIES[method], If_Match=f'"nonsense", {stored.etag}')
    assert response.status_code == 200


@pytest.mark.parametrize("method", METHODS)
def test_a_star_matches_any_unit_that_exists(stored: Unit, method: str) -> None:
    assert getattr(stored, method)(BODIES[method], If_Match="*").status_code == 200


@pytest.mark.parametrize("condition", ['"nonsense"', "*"])
def test_a_unit_that_does_not_exist_matches_nothing(unit: Unit, condition: str) -> None:
    problem(unit.put(minimal(), If_Match=condition), 412)
    assert not unit.exists


@pytest.mark.parametrize("condition", ["nonsense", '"open', ""])
def test_a_malformed_condition_lets_nothing_through(stored: Unit, condition: str) -> None:
    etag = stored.etag
    assert stored.put(full(type="villa"), If_Match=condition).status_code in (400, 412, 422)
    assert stored.etag == etag


def test_create_only_creates(unit: Unit) -> None:
    assert unit.put(minimal(), If_None_Match="*").status_code == 201


@pytest.mark.parametrize("method", METHODS)
def test_create_only_does_not_replace(stored: Unit, method: str) -> None:
    etag = stored.etag
    problem(getattr(stored, method)(BODIES[method], If_None_Match="*"), 412)
    assert stored.etag == etag


def test_the_condition_is_checked_before_the_lock(stored: Unit, sql: Sql) -> None:
    states.hold(sql, stored)
    problem(stored.put(full(status="available"), If_Match='"stale"'), 412)
    problem(stored.patch({"priceSar": 1}, If_Match='"stale"'), 412)


def test_a_reader_is_spared_what_it_has(stored: Unit) -> None:
    etag = stored.etag
    response = stored.get(If_None_Match=etag)
    assert (response.status_code, response.content, response.headers["etag"]) == (304, b"", etag)


def test_a_reader_gets_what_has_changed(stored: Unit) -> None:
    stale = stored.etag
    stored.patch({"bedrooms": 9})
    assert stored.get(If_None_Match=stale).status_code == 200
