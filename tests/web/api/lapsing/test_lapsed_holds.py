"""A hold is over at its time for the integration API, even when nobody has released it yet."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.support import states
from tests.support.bodies import full, without
from tests.support.client import Unit, exact, put_array
from tests.support.feed import Feed
from tests.support.problems import conflict, problem
from tests.support.sql import Sql


def on_the_wire(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def listed(unit: Unit, **query: str) -> list[str]:
    response = unit.http.get(unit.project.units_url, params=query)
    assert response.status_code == 200, response.text
    return [item["code"] for item in response.json()["units"]]


@pytest.fixture
def ended_at(stored: Unit, sql: Sql) -> datetime:
    """The end of the lapsed hold on `stored`."""
    return states.hold_and_let_lapse(sql, stored)


def test_a_reader_sees_an_available_unit(stored: Unit, ended_at: datetime) -> None:
    answer = stored.read()
    assert (answer["status"], answer["holdExpiresAt"]) == ("available", None)


def test_the_unit_changed_when_the_hold_ended(stored: Unit, ended_at: datetime) -> None:
    assert stored.read()["updatedAt"] == on_the_wire(ended_at)


def test_the_etag_is_not_that_of_the_held_unit(stored: Unit, sql: Sql) -> None:
    held = states.hold(sql, stored, expires_in=1)
    while_held = stored.get()
    states.wait_until(sql, held.ends)
    assert while_held.json()["status"] == "held"
    assert stored.etag != while_held.headers["etag"]


def test_the_list_shows_it_as_the_unit_itself_does(stored: Unit, ended_at: datetime) -> None:
    (item,) = stored.http.get(stored.project.units_url).json()["units"]
    assert item == stored.get().json()


def test_the_status_filter_sees_an_available_unit(stored: Unit, ended_at: datetime) -> None:
    assert listed(stored, status="available") == [stored.code]
    assert listed(stored, status="held") == []


def test_the_time_filter_sees_the_end_of_the_hold(stored: Unit, ended_at: datetime) -> None:
    just_after = ended_at + timedelta(milliseconds=1)
    assert listed(stored, updatedSince=on_the_wire(ended_at)) == [stored.code]
    assert listed(stored, updatedSince=on_the_wire(just_after)) == []


@pytest.mark.parametrize("body", [full(priceSar=1), full(status="unavailable"), without(full(), "vatRate")])
def test_a_lapsed_hold_locks_nothing_for_a_put(
    stored: Unit, ended_at: datetime, body: dict[str, object]
) -> None:
    assert stored.put(body).status_code == 200


@pytest.mark.parametrize("body", [{"priceSar": 1}, {"status": "unavailable"}, {"vatRate": None}])
def test_a_lapsed_hold_locks_nothing_for_a_patch(
    stored: Unit, ended_at: datetime, body: dict[str, object]
) -> None:
    assert stored.patch(body).status_code == 200


def test_a_buyers_status_is_invalid_again(stored: Unit, ended_at: datetime) -> None:
    problem(stored.patch({"status": "held"}), 422)


def test_a_live_hold_still_locks(stored: Unit, sql: Sql) -> None:
    states.hold(sql, stored, expires_in=60)
    conflict(stored.patch({"priceSar": 1}), "terms-locked", "held", "priceSar")


def test_the_etag_that_readers_saw_is_good_for_a_write(stored: Unit, ended_at: datetime) -> None:
    assert stored.patch({"priceSar": 1}, If_Match=stored.etag).status_code == 200


def test_the_etag_of_the_held_unit_is_stale(stored: Unit, sql: Sql) -> None:
    held = states.hold(sql, stored, expires_in=1)
    stale = stored.etag
    states.wait_until(sql, held.ends)
    problem(stored.patch({"priceSar": 1}, If_Match=stale), 412)


def test_the_release_comes_before_the_event_of_the_writer(
    stored: Unit, ended_at: datetime, feed: Feed, sql: Sql
) -> None:
    version = states.version(sql, stored)
    stored.patch({"status": "unavailable"})
    _, released, taken_off = feed.of(stored)
    assert (released["type"], released["createdAt"]) == ("unit.released", on_the_wire(ended_at))
    assert released["data"]["unit"]["previousStatus"] == "held"
    assert released["data"]["unit"]["status"] == "available"
    assert (taken_off["type"], taken_off["data"]["unit"]["previousStatus"]) == (
        "unit.unavailable",
        "available",
    )
    assert taken_off["createdAt"] > released["createdAt"]
    assert states.version(sql, stored) == version + 2


def test_the_release_is_written_once(stored: Unit, ended_at: datetime, feed: Feed) -> None:
    for price in (1, 2, 3):
        stored.patch({"priceSar": price})
    assert feed.types_of(stored) == ["unit.held", "unit.released"]


def test_a_write_that_changes_nothing_moves_neither_etag_nor_time(stored: Unit, ended_at: datetime) -> None:
    before = stored.get()
    for answer in (stored.put(full()), stored.patch({}), stored.patch({"bedrooms": full()["bedrooms"]})):
        assert (answer.text, answer.headers["etag"]) == (before.text, before.headers["etag"])
    assert stored.etag == before.headers["etag"]


def test_a_refused_write_shows_the_unit_as_readers_see_it(stored: Unit, ended_at: datetime) -> None:
    before = stored.get()
    problem(stored.patch({"priceSar": -1}), 422)
    problem(stored.patch({"priceSar": 1}, If_Match='"stale"'), 412)
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])


def test_the_bulk_route_sees_it_too(stored: Unit, ended_at: datetime, feed: Feed) -> None:
    items = [full(code=stored.code, priceSar=1, status="unavailable")]
    assert put_array(stored.http, stored.project, items).json()["counts"]["replaced"] == 1
    assert feed.types_of(stored) == ["unit.held", "unit.released", "unit.unavailable"]


def test_a_unit_read_after_the_lapse_can_be_put_back_changed(stored: Unit, ended_at: datetime) -> None:
    sent = without(exact(stored.get()), "status") | {"priceSar": 5}
    assert exact(stored.put(sent))["priceSar"] == 5


def test_many_writers_write_one_release(stored: Unit, ended_at: datetime, feed: Feed) -> None:
    def write(number: int) -> int:
        return stored.patch({"bedrooms": number}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(8))) == {200}
    assert feed.types_of(stored) == ["unit.held", "unit.released"]


def test_a_bulk_call_that_changes_nothing_moves_neither_etag_nor_time(
    stored: Unit, ended_at: datetime
) -> None:
    before = stored.get()
    answer = put_array(stored.http, stored.project, [full(code=stored.code)])
    assert answer.json()["results"] == [{"code": stored.code, "outcome": "unchanged"}]
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])


def test_a_dry_run_releases_nothing(stored: Unit, ended_at: datetime, sql: Sql, feed: Feed) -> None:
    version = states.version(sql, stored)
    items = [full(code=stored.code, status="unavailable")]
    answer = put_array(stored.http, stored.project, items, dryRun="true")
    assert answer.json()["counts"]["replaced"] == 1
    assert (states.version(sql, stored), feed.types_of(stored)) == (version, ["unit.held"])
