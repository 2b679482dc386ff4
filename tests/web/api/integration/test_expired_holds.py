"""A hold is over at its time for the integration API, even when nobody has released it yet."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from tests.support.bodies import full, without
from tests.support.buying import Hold
from tests.support.client import Unit, exact, put_array
from tests.support.feed import Feed
from tests.support.installation import Installation
from tests.support.problems import problem
from tests.support.unit_rows import stored_status, stored_version


@pytest.fixture
def stored(idle: Installation) -> Unit:
    return idle.units(1)[0]


@pytest.fixture
def expired(idle: Installation, stored: Unit) -> Hold:
    """The hold on `stored`, which is over."""
    return idle.desk.held(stored).end_now(idle.sql)


def listed(unit: Unit, **query: str) -> list[str]:
    response = unit.http.get(unit.project.units_url, params=query)
    assert response.status_code == 200, response.text
    return [item["code"] for item in response.json()["units"]]


def test_a_reader_sees_an_available_unit_since_the_end(
    stored: Unit, expired: Hold, idle: Installation
) -> None:
    answer = stored.get().json()
    assert (answer["status"], answer["holdExpiresAt"]) == ("available", None)
    assert answer["updatedAt"] == expired.expires_at
    assert stored.http.get(stored.project.units_url).json()["units"] == [answer]
    assert (listed(stored, status="available"), listed(stored, status="held")) == ([stored.code], [])
    just_after = (datetime.fromisoformat(expired.expires_at) + timedelta(milliseconds=1)).isoformat()
    assert listed(stored, updatedSince=expired.expires_at) == [stored.code]
    assert listed(stored, updatedSince=just_after) == []
    assert stored_status(idle.sql, stored) == "held"


def test_the_etag_is_the_one_that_readers_see(stored: Unit, idle: Installation) -> None:
    held = idle.desk.held(stored)
    stale = stored.etag
    held.end_now(idle.sql)
    etag = stored.etag
    assert etag != stale
    problem(stored.patch({"priceSar": 1}, If_Match=stale), 412)
    assert stored.patch({"priceSar": 1}, If_Match=etag).status_code == 200


@pytest.mark.parametrize("body", [{"priceSar": 1}, {"status": "unavailable"}, {"vatRate": None}])
def test_it_locks_nothing(stored: Unit, expired: Hold, body: dict[str, object]) -> None:
    problem(stored.patch({"status": "held"}), 422)
    assert stored.patch(body).status_code == 200
    assert stored.put(full(**body)).status_code == 200


def test_a_unit_that_was_read_can_be_put_back_changed(stored: Unit, expired: Hold) -> None:
    sent = without(exact(stored.get()), "status") | {"priceSar": 5}
    assert exact(stored.put(sent))["priceSar"] == 5


@pytest.mark.parametrize("in_bulk", [False, True])
def test_the_release_comes_before_the_event_of_the_writer(
    stored: Unit, expired: Hold, idle_feed: Feed, idle: Installation, in_bulk: bool
) -> None:
    version = stored_version(idle.sql, stored)
    if in_bulk:
        items = [full(code=stored.code, priceSar=1, status="unavailable")]
        assert put_array(stored.http, stored.project, items).json()["counts"]["replaced"] == 1
    else:
        stored.patch({"status": "unavailable"})
    _, released, taken_off = idle_feed.of(stored)
    assert (released["type"], released["createdAt"]) == ("unit.released", expired.expires_at)
    assert released["data"]["unit"]["previousStatus"] == "held"
    assert released["data"]["unit"]["status"] == "available"
    assert taken_off["type"] == "unit.unavailable"
    assert taken_off["data"]["unit"]["previousStatus"] == "available"
    assert taken_off["createdAt"] > released["createdAt"]
    assert stored_version(idle.sql, stored) == version + 2


def test_what_changes_nothing_moves_neither_etag_nor_time(
    stored: Unit, expired: Hold, idle: Installation, idle_feed: Feed
) -> None:
    before, version = stored.get(), stored_version(idle.sql, stored)
    items = [full(code=stored.code, status="unavailable")]
    answer = put_array(stored.http, stored.project, items, dryRun="true")
    assert answer.json()["counts"]["replaced"] == 1
    assert (stored_version(idle.sql, stored), idle_feed.types_of(stored)) == (version, ["unit.held"])
    problem(stored.patch({"priceSar": -1}), 422)
    problem(stored.patch({"priceSar": 1}, If_Match='"stale"'), 412)
    for same in (stored.put(full()), stored.patch({}), stored.patch({"bedrooms": full()["bedrooms"]})):
        assert (same.text, same.headers["etag"]) == (before.text, before.headers["etag"])
    answer = put_array(stored.http, stored.project, [full(code=stored.code)])
    assert answer.json()["results"] == [{"code": stored.code, "outcome": "unchanged"}]
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])


def test_many_writers_write_one_release(stored: Unit, expired: Hold, idle_feed: Feed) -> None:
    def write(number: int) -> int:
        return stored.patch({"bedrooms": number}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(write, range(8))) == {200}
    assert idle_feed.types_of(stored) == ["unit.held", "unit.released"]
