"""When the background work goes on it writes what everybody has seen already."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from tests.support import states
from tests.support.bodies import full
from tests.support.buying import Buyer, Hold, offer_url
from tests.support.client import Unit
from tests.support.feed import Feed
from tests.support.sql import Sql

IsStoredAs = Callable[[Unit, str], bool]
WorkUntil = Callable[[Callable[[], bool]], None]


@pytest.fixture
def lapsed(stored: Unit, sql: Sql) -> Hold:
    held = states.hold(sql, stored, expires_in=0.02)
    states.wait_until(sql, held.ends)
    return held


@pytest.fixture
def short_held(stored: Unit, sql: Sql) -> list[Unit]:
    """Ten units whose holds last for a moment."""
    states.settle(sql, stored, holdSeconds=0.2)
    units = [Unit(stored.http, stored.project, f"C-{number}") for number in range(10)]
    for unit in units:
        unit.create(full())
    return units


def representations(held: Hold) -> list[str]:
    """All that readers get to see of the unit and its booking."""
    unit = held.unit.get()
    answers = [
        unit.text,
        unit.headers["etag"],
        held.unit.http.get(held.unit.project.units_url).text,
        held.buyer.send("GET", offer_url(held.unit)).text,
        held.get().text,
    ]
    return [str(answer) for answer in answers]


def test_readers_see_the_same_before_and_after_the_release(
    lapsed: Hold, work_until: WorkUntil, is_stored_as: IsStoredAs
) -> None:
    before = representations(lapsed)
    work_until(lambda: is_stored_as(lapsed.unit, "available"))
    assert representations(lapsed) == before


def test_the_release_and_its_event_are_written_at_the_time_of_the_end(
    lapsed: Hold, work_until: WorkUntil, is_stored_as: IsStoredAs, feed: Feed
) -> None:
    assert feed.types_of(lapsed.unit) == ["unit.held"]
    work_until(lambda: is_stored_as(lapsed.unit, "available"))
    _, released = feed.of(lapsed.unit)
    assert (released["type"], released["createdAt"]) == ("unit.released", lapsed.expires_at)
    assert released["createdAt"] == lapsed.unit.read()["updatedAt"]
    assert released["data"]["booking"] is None


def test_a_release_that_a_writer_has_written_is_not_written_again(
    lapsed: Hold, work_until: WorkUntil, sql: Sql, feed: Feed, is_stored_as: IsStoredAs
) -> None:
    assert lapsed.unit.patch({"bedrooms": 7}).status_code == 200
    version = states.version(sql, lapsed.unit)
    # A later hold of another unit shows when the expirer has been round.
    other = Unit(lapsed.unit.http, lapsed.unit.project, "B-1")
    other.create(full())
    states.hold_and_let_lapse(sql, other)
    work_until(lambda: is_stored_as(other, "available"))
    assert feed.types_of(lapsed.unit) == ["unit.held", "unit.released"]
    assert states.version(sql, lapsed.unit) == version


def test_many_that_lapsed_while_it_slept_are_all_released_once(
    short_held: list[Unit],
    work_until: WorkUntil,
    sql: Sql,
    feed: Feed,
    is_stored_as: IsStoredAs,
) -> None:
    holds = [Buyer(unit.http).hold(unit) for unit in short_held]
    states.wait_until(sql, holds[-1].ends)
    work_until(lambda: all(is_stored_as(unit, "available") for unit in short_held))
    for held in holds:
        assert feed.types_of(held.unit) == ["unit.held", "unit.released"]
        assert held.read()["status"] == "lapsed"


def test_an_extended_hold_is_not_released_at_its_old_end(
    stored: Unit, work_until: WorkUntil, sql: Sql, feed: Feed, is_stored_as: IsStoredAs
) -> None:
    held = states.hold(sql, stored, expires_in=1)
    later = (held.ends + timedelta(days=1)).isoformat()
    extended = states.act(sql, stored, "extend", {"until": later})
    states.wait_until(sql, held.ends)
    other = Unit(stored.http, stored.project, "B-1")
    other.create(full())
    states.hold_and_let_lapse(sql, other)
    work_until(lambda: is_stored_as(other, "available"))
    assert (stored.read()["status"], feed.types_of(stored)) == ("held", ["unit.held"])
    assert extended["holdExpiresAt"] == held.read()["holdExpiresAt"]
