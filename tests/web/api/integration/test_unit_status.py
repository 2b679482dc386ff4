"""What a caller may say of a unit's status and terms, in each status that the unit can be in."""

from decimal import Decimal

import httpx
import pytest

from tests.support.backoffice import Desk
from tests.support.bodies import TERMS, full, minimal, without
from tests.support.client import Unit, exact
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import conflict, invalid
from tests.support.sql import Sql

LOCKED = ["held", "reserved", "sold"]
METHODS = ["PUT", "PATCH"]
OTHERS = {"priceSar": 1, "depositPercent": 50, "vatIncluded": True, "vatRate": 5}
CLEARABLE = ["depositPercent", "vatIncluded", "vatRate"]


def send_status(unit: Unit, method: str, status: object, **others: object) -> httpx.Response:
    if method == "PUT":
        return unit.put(full(status=status, **others))
    return unit.patch({"status": status, **others})


@pytest.mark.parametrize("method", METHODS)
def test_a_change_of_status_is_told_as_an_event_of_the_shape_of_a_webhook(
    stored: Unit, feed: Feed, method: str
) -> None:
    for status, previous in (("unavailable", "available"), ("available", "unavailable")):
        answer = exact(send_status(stored, method, status))
        event = feed.of(stored)[-1]
        assert set(event) == {"id", "type", "createdAt", "data"}
        assert (event["type"], event["createdAt"]) == (f"unit.{status}", answer["updatedAt"])
        unit = {
            "id": answer["id"],
            "code": stored.code,
            "projectSlug": stored.project.slug,
            "status": status,
            "previousStatus": previous,
        }
        assert event["data"] == {"unit": unit, "booking": None}
    assert len(feed.of(stored)) == 2


@pytest.mark.parametrize("status", ["available", "unavailable"])
def test_the_same_status_and_a_change_of_fields_alone_are_no_event(
    unit: Unit, feed: Feed, status: str
) -> None:
    unit.create(full(status=status))
    etag = unit.etag
    assert {send_status(unit, method, status).headers["etag"] for method in METHODS} == {etag}
    assert exact(unit.put(full(priceSar=1)))["status"] == status
    assert exact(unit.patch({"description": None}))["status"] == status
    assert feed.of(unit) == []


@pytest.mark.parametrize("locked", LOCKED)
def test_a_locked_unit_refuses_every_status_and_keeps_its_own(
    stored: Unit, desk: Desk, feed: Feed, locked: str
) -> None:
    desk.book(stored, locked)
    before, told = stored.get(), feed.types_of(stored)
    for method in METHODS:
        for status in ("available", locked):
            response = send_status(stored, method, status, type="villa")
            conflict(response, "status-locked", locked, "status")
            assert ("retry-after" in response.headers) == (locked == "held")
        invalid(send_status(stored, method, "nonsense"), "/status")
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])
    answer = exact(stored.put(full(type="villa")))
    assert (answer["status"], answer["type"]) == (locked, "villa")
    assert (answer["holdExpiresAt"] is not None) == (locked == "held")
    assert feed.types_of(stored) == told


@pytest.mark.parametrize("changes", [{"status": "unavailable"}, {"priceSar": 1}])
def test_a_refusal_by_a_hold_tells_when_it_ends(stored: Unit, desk: Desk, changes: dict[str, object]) -> None:
    desk.settle(stored.project, holdSeconds=1200)
    desk.held(stored)
    for response in (stored.patch(changes), stored.put(full(**changes))):
        refused = conflict(response, response.json()["reason"], "held", *changes)
        assert refused["holdExpiresAt"] == stored.read()["holdExpiresAt"]
        assert 1 <= int(response.headers["retry-after"]) <= 1201


def test_a_status_that_only_buyers_and_staff_bring_about_is_never_accepted(stored: Unit) -> None:
    new, off_sale = (Unit(stored.http, stored.project, code) for code in ("A-102", "A-103"))
    off_sale.create(minimal(status="unavailable"))
    etag = stored.etag
    for status in LOCKED:
        for unit in (stored, off_sale, new):
            invalid(unit.put(full(status=status)), "/status")
        invalid(stored.patch({"status": status}), "/status")
    assert (stored.etag, new.exists) == (etag, False)


def test_rapid_changes_give_events_with_strictly_increasing_times(stored: Unit, feed: Feed) -> None:
    for number in range(10):
        stored.patch({"status": "unavailable" if number % 2 == 0 else "available"})
    events = feed.of(stored)
    assert len(events) == 10
    assert chain_is_unbroken(events)


@pytest.mark.parametrize("status", ["held", "reserved"])
def test_while_a_buyer_is_mid_booking_the_terms_stand_still(stored: Unit, desk: Desk, status: str) -> None:
    desk.book(stored, status)
    before = stored.get()
    for name in TERMS:
        for response in (
            stored.put(full(type="villa", **{name: OTHERS[name]})),
            stored.patch({"description": "Repainted.", name: OTHERS[name]}),
        ):
            conflict(response, "terms-locked", status, name)
    for name in CLEARABLE:
        conflict(stored.put(without(full(), name)), "terms-locked", status, name)
        conflict(stored.patch({name: None}), "terms-locked", status, name)
    conflict(stored.put(full(**OTHERS)), "terms-locked", status, *TERMS)
    assert (stored.get().text, stored.etag) == (before.text, before.headers["etag"])


@pytest.mark.parametrize("status", ["held", "reserved"])
def test_the_stored_terms_and_all_other_fields_may_be_sent_mid_booking(
    stored: Unit, desk: Desk, status: str
) -> None:
    desk.book(stored, status)
    before = stored.get()
    assert stored.put(without(exact(before), "status")).text == before.text
    same = full(depositPercent=Decimal("2.5000"), vatRate=Decimal("1.5e1"), priceSar=Decimal("950000.00"))
    assert exact(stored.put(same | {"type": "villa"}))["type"] == "villa"
    changes: dict[str, object] = {"areaSqm": 99, "bedrooms": None, "images": []}
    answer = exact(stored.patch(changes | {name: full()[name] for name in TERMS}))
    assert {name: answer[name] for name in changes} == changes


def test_absent_terms_may_stay_absent_and_nothing_else(unit: Unit, desk: Desk) -> None:
    body = without(full(), *CLEARABLE)
    unit.create(body)
    desk.held(unit)
    assert unit.put(body | {"type": "villa"}).status_code == 200
    conflict(unit.put(full()), "terms-locked", "held", *CLEARABLE)
    conflict(unit.patch({"depositPercent": 0}), "terms-locked", "held", "depositPercent")


def test_on_a_sold_unit_the_terms_may_change(stored: Unit, desk: Desk) -> None:
    desk.sold(stored)
    answer = exact(stored.put(full(**OTHERS)))
    assert {name: answer[name] for name in TERMS} == OTHERS
    assert exact(stored.patch({"priceSar": 7}))["priceSar"] == 7


def test_what_staff_archived_is_not_put_on_sale_again_and_its_fields_may_change(
    stored: Unit, sql: Sql, desk: Desk, feed: Feed
) -> None:
    desk.did(stored, "archive")
    etag = stored.etag
    for method in METHODS:
        response = send_status(stored, method, "available", type="villa")
        conflict(response, "transition-not-allowed", "unavailable")
        assert send_status(stored, method, "unavailable").headers["etag"] == etag
    for status in LOCKED:
        invalid(stored.put(minimal(status=status)), "/status")
    assert stored.etag == etag
    assert exact(stored.put(full(type="villa", priceSar=1)))["priceSar"] == 1
    answer = exact(stored.patch({"depositPercent": None}))
    assert (answer["status"], answer["depositPercent"]) == ("unavailable", None)
    assert sql.value("select archived from unit where id = $1", answer["id"]) is True
    assert feed.types_of(stored) == ["unit.unavailable"]
