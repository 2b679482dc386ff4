"""What a caller may say about a unit's status, and what it may not."""

import httpx
import pytest

from tests.support import states
from tests.support.bodies import full, minimal, without
from tests.support.client import Unit, exact
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import conflict, invalid
from tests.support.sql import Sql

LOCKED = ["held", "reserved", "sold"]
NAMES = ["available", "held", "reserved", "sold", "unavailable"]
METHODS = ["PUT", "PATCH"]
NONSENSE: list[object] = [
    None,
    "",
    "Available",
    "AVAILABLE",
    "archived",
    " available",
    1,
    True,
    ["available"],
    {},
]


def send_status(unit: Unit, method: str, status: object, **others: object) -> httpx.Response:
    if method == "PUT":
        return unit.put(full(status=status, **others))
    return unit.patch({"status": status, **others})


@pytest.mark.parametrize("method", METHODS)
def test_taking_off_sale_is_echoed_as_unavailable(stored: Unit, feed: Feed, method: str) -> None:
    send_status(stored, method, "unavailable")
    (event,) = feed.of(stored)
    assert event["type"] == "unit.unavailable"
    assert (event["data"]["unit"]["previousStatus"], event["data"]["unit"]["status"]) == (
        "available",
        "unavailable",
    )


@pytest.mark.parametrize("method", METHODS)
def test_putting_on_sale_is_echoed_as_available(off_sale: Unit, feed: Feed, method: str) -> None:
    send_status(off_sale, method, "available")
    (event,) = feed.of(off_sale)
    assert event["type"] == "unit.available"
    assert (event["data"]["unit"]["previousStatus"], event["data"]["unit"]["status"]) == (
        "unavailable",
        "available",
    )


@pytest.mark.parametrize("status", ["available", "unavailable"])
@pytest.mark.parametrize("method", METHODS)
def test_naming_the_status_that_is_is_no_change(unit: Unit, feed: Feed, method: str, status: str) -> None:
    unit.create(full(status=status))
    before = unit.get()
    send_status(unit, method, status)
    assert (unit.get().text, unit.etag) == (before.text, before.headers["etag"])
    assert feed.of(unit) == []


def test_a_put_without_status_leaves_it_alone(off_sale: Unit, feed: Feed) -> None:
    assert exact(off_sale.put(minimal(type="villa")))["status"] == "unavailable"
    assert feed.of(off_sale) == []


@pytest.mark.parametrize("locked", LOCKED)
def test_a_put_without_status_leaves_a_locked_one_alone(
    stored: Unit, sql: Sql, feed: Feed, locked: str
) -> None:
    states.bring_to(sql, stored, locked)
    told = feed.types_of(stored)
    answer = exact(stored.put(full(type="villa")))
    assert (answer["status"], answer["type"]) == (locked, "villa")
    assert feed.types_of(stored) == told


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("locked", LOCKED)
@pytest.mark.parametrize("method", METHODS)
def test_a_locked_unit_refuses_every_status(
    stored: Unit, sql: Sql, method: str, locked: str, name: str
) -> None:
    states.bring_to(sql, stored, locked)
    before = stored.get()
    response = send_status(stored, method, name, type="villa")
    conflict(response, "status-locked", locked, "status")
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])


@pytest.mark.parametrize("method", METHODS)
def test_a_refusal_by_a_hold_tells_when_it_ends(stored: Unit, sql: Sql, method: str) -> None:
    states.hold(sql, stored, expires_in=120)
    response = send_status(stored, method, "unavailable")
    body = conflict(response, "status-locked", "held")
    assert body["holdExpiresAt"] == stored.read()["holdExpiresAt"]
    assert 1 <= int(response.headers["retry-after"]) <= 121


@pytest.mark.parametrize("locked", ["reserved", "sold"])
def test_a_refusal_by_anything_else_names_no_hold(stored: Unit, sql: Sql, locked: str) -> None:
    states.bring_to(sql, stored, locked)
    response = stored.patch({"status": "unavailable"})
    assert conflict(response, "status-locked", locked).get("holdExpiresAt") is None
    assert "retry-after" not in response.headers


@pytest.mark.parametrize("name", LOCKED)
@pytest.mark.parametrize("method", METHODS)
def test_a_buyers_status_is_never_accepted(stored: Unit, method: str, name: str) -> None:
    etag = stored.etag
    invalid(send_status(stored, method, name), "/status")
    assert stored.etag == etag


@pytest.mark.parametrize("name", LOCKED)
def test_a_buyers_status_is_not_accepted_for_a_new_unit(unit: Unit, name: str) -> None:
    invalid(unit.put(minimal(status=name)), "/status")
    assert not unit.exists


@pytest.mark.parametrize("name", LOCKED)
def test_a_buyers_status_is_not_accepted_off_sale(off_sale: Unit, name: str) -> None:
    invalid(off_sale.put(minimal(status=name)), "/status")


@pytest.mark.parametrize("nonsense", NONSENSE, ids=repr)
@pytest.mark.parametrize("current", ["available", *LOCKED])
@pytest.mark.parametrize("method", METHODS)
def test_anything_else_is_no_status(
    stored: Unit, sql: Sql, method: str, current: str, nonsense: object
) -> None:
    if current in LOCKED:
        states.bring_to(sql, stored, current)
    etag = stored.etag
    invalid(send_status(stored, method, nonsense), "/status")
    assert stored.etag == etag


def test_the_end_of_a_hold_is_displayed(stored: Unit, sql: Sql) -> None:
    states.hold(sql, stored)
    answer = stored.read()
    assert answer["status"] == "held"
    assert answer["holdExpiresAt"] > answer["updatedAt"]


@pytest.mark.parametrize("status", ["reserved", "sold"])
def test_only_a_hold_has_an_end_on_display(stored: Unit, sql: Sql, status: str) -> None:
    states.bring_to(sql, stored, status)
    assert stored.read()["holdExpiresAt"] is None


def test_rapid_changes_give_events_with_strictly_increasing_times(stored: Unit, feed: Feed) -> None:
    for number in range(20):
        stored.patch({"status": "unavailable" if number % 2 == 0 else "available"})
    events = feed.of(stored)
    assert len(events) == 20
    assert chain_is_unbroken(events)


def test_an_event_has_the_shape_of_a_webhook_body(stored: Unit, feed: Feed) -> None:
    answer = exact(stored.patch({"status": "unavailable"}))
    (event,) = feed.of(stored)
    assert set(event) == {"id", "type", "createdAt", "data"}
    assert event["createdAt"] == answer["updatedAt"]
    assert event["data"] == {
        "unit": {
            "id": answer["id"],
            "code": stored.code,
            "projectSlug": stored.project.slug,
            "status": "unavailable",
            "previousStatus": "available",
        },
        "booking": None,
    }


def test_a_change_of_fields_alone_is_no_event(stored: Unit, feed: Feed) -> None:
    stored.put(full(priceSar=1))
    stored.patch({"description": None})
    assert feed.of(stored) == []


def test_a_refused_call_is_no_event(stored: Unit, feed: Feed) -> None:
    stored.put(full(status="unavailable", priceSar=-1))
    stored.put(without(full(status="unavailable"), "type"))
    assert feed.of(stored) == []
