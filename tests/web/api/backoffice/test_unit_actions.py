"""What staff do to a unit: the answer, the event, and what becomes of the buyer."""

import httpx
import pytest

from tests.support.backoffice import Desk, ask_for_hold, succeeded, unit_url
from tests.support.bodies import UNIT_FIELDS
from tests.support.client import Unit
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.problems import conflict, invalid, problem
from tests.web.api.backoffice.conditions import Condition, Office

STAFF_FIELDS = {"archived", "reservedUntil", "bookingReference"}
WITHOUT_A_BODY = ("open", "cancel-hold", "put-on-sale", "take-off-sale", "archive", "confirm-deposit")


def test_the_answer_is_the_unit_with_what_staff_alone_know(stored: Unit, desk: Desk) -> None:
    answer = desk.did(stored, "open")
    assert set(answer) == UNIT_FIELDS | STAFF_FIELDS
    assert {name: answer[name] for name in UNIT_FIELDS} == stored.read()


@pytest.mark.parametrize(
    ("condition", "action", "told"),
    [
        (Condition.AVAILABLE, "open", {"holdExpiresAt", "bookingReference"}),
        (Condition.HELD, "extend", {"holdExpiresAt", "bookingReference"}),
        (Condition.SIGNED, "confirm-deposit", {"reservedUntil", "bookingReference"}),
        (Condition.RESERVED, "extend", {"reservedUntil", "bookingReference"}),
        (Condition.RESERVED, "close-sale", {"bookingReference"}),
        (Condition.RESERVED, "cancel-reservation", set()),
        (Condition.AVAILABLE, "take-off-sale", set()),
    ],
)
def test_the_answer_tells_the_end_and_the_booking(
    condition: Condition, action: str, told: set[str], stored: Unit, office: Office, desk: Desk
) -> None:
    office.bring(stored, condition)
    answer = desk.did(stored, action)
    names = ("holdExpiresAt", "reservedUntil", "bookingReference")
    assert {name for name in names if answer[name] is not None} == told
    assert answer["archived"] is False


def test_staff_open_a_unit_for_a_buyer(stored: Unit, desk: Desk, public: httpx.Client) -> None:
    answer = desk.did(stored, "open")
    booking = desk.booking(answer["bookingReference"])
    assert (booking["status"], booking["unitCode"], booking["buyer"]) == ("open", stored.code, None)
    assert booking["holdExpiresAt"] == answer["holdExpiresAt"]
    conflict(ask_for_hold(public, stored), "not-available", "held")


def test_a_unit_that_is_held_says_until_when(stored: Unit, desk: Desk) -> None:
    answer = desk.did(stored, "open")
    response = desk.act(stored, "open")
    refusal = conflict(response, "transition-not-allowed", "held")
    assert refusal["detail"] == "`open` is not possible while the unit is held."
    assert refusal["holdExpiresAt"] == answer["holdExpiresAt"]
    assert 0 < int(response.headers["retry-after"]) <= 300


@pytest.mark.parametrize("action", ["put-on-sale", "cancel-reservation"])
def test_no_end_is_told_where_it_would_not_help_to_wait(stored: Unit, desk: Desk, action: str) -> None:
    desk.did(stored, "open")
    response = desk.act(stored, action)
    refusal = conflict(response, "transition-not-allowed", "held")
    assert refusal["detail"] == f"`{action}` is not possible while the unit is held."
    assert "holdExpiresAt" not in refusal
    assert "retry-after" not in response.headers


def test_a_sale_to_somebody_else_may_wait_for_the_end_of_a_hold(stored: Unit, desk: Desk) -> None:
    end = desk.did(stored, "open")["holdExpiresAt"]
    assert conflict(desk.act(stored, "close-sale"), "transition-not-allowed", "held")["holdExpiresAt"] == end


def test_the_answer_carries_the_etag_of_the_unit(stored: Unit, desk: Desk) -> None:
    assert desk.act(stored, "open").headers["etag"] == stored.etag
    assert desk.act(stored, "cancel-hold").headers["etag"] == stored.etag


def test_an_action_can_be_bound_to_the_state_that_staff_have_seen(stored: Unit, desk: Desk) -> None:
    seen = stored.etag
    assert stored.patch({"bedrooms": 1}).status_code == 200
    current = stored.etag
    response = desk.http.post(f"{unit_url(stored)}/archive", headers={"If-Match": seen})
    problem(response, 412)
    assert (response.headers["etag"], stored.etag) == (current, current)
    response = desk.http.post(f"{unit_url(stored)}/archive", headers={"If-Match": current})
    assert response.status_code == 200, response.text


def test_an_action_can_be_kept_from_a_state_that_staff_have_seen(stored: Unit, desk: Desk) -> None:
    seen = stored.etag
    for named in (seen, f'"0-0", {seen}', "*"):
        response = desk.http.post(f"{unit_url(stored)}/archive", headers={"If-None-Match": named})
        problem(response, 412)
        assert stored.etag == seen
    response = desk.http.post(f"{unit_url(stored)}/archive", headers={"If-None-Match": '"0-0"'})
    assert response.status_code == 200, response.text


def test_a_state_that_is_not_that_one_is_told_before_what_it_forbids(stored: Unit, desk: Desk) -> None:
    response = desk.http.post(f"{unit_url(stored)}/cancel-hold", headers={"If-Match": '"0-0"'})
    problem(response, 412)


@pytest.mark.parametrize("action", ["take-off-sale", "archive", "cancel-hold"])
@pytest.mark.parametrize("condition", [Condition.HELD, Condition.SIGNED])
def test_ending_a_hold_cancels_its_booking(
    condition: Condition, action: str, stored: Unit, office: Office, desk: Desk, feed: Feed
) -> None:
    held = office.bring(stored, condition)
    assert held is not None
    answer = desk.did(stored, action)
    assert (answer["bookingReference"], answer["holdExpiresAt"]) == (None, None)
    assert desk.booking(held.reference)["status"] == "cancelled"
    assert succeeded(held.read())["status"] == "cancelled"
    (_, ended) = feed.of(stored)
    released = "unit.released" if action == "cancel-hold" else "unit.unavailable"
    assert (ended["type"], ended["data"]["booking"]) == (released, None)
    assert ended["data"]["unit"]["previousStatus"] == "held"
    conflict(held.sign(), "transition-not-allowed", answer["status"])


@pytest.mark.parametrize("action", ["take-off-sale", "archive", "cancel-reservation"])
def test_ending_a_reservation_makes_its_deposit_due(
    action: str, stored: Unit, office: Office, desk: Desk, feed: Feed
) -> None:
    held = office.reserved(stored)
    answer = desk.did(stored, action)
    assert (answer["bookingReference"], answer["reservedUntil"]) == (None, None)
    booking = desk.booking(held.reference)
    assert booking["status"] == "refund-due"
    assert booking["depositConfirmedAt"] is not None
    assert feed.of(stored)[-1]["data"]["unit"]["previousStatus"] == "reserved"


def test_revoking_a_sale_makes_its_deposit_due(stored: Unit, office: Office, admin: Desk, feed: Feed) -> None:
    held = office.sold(stored)
    answer = admin.did(stored, "revoke-sale")
    assert (answer["status"], answer["bookingReference"]) == ("unavailable", None)
    booking = admin.booking(held.reference)
    assert booking["status"] == "refund-due"
    assert booking["closedAt"] is not None
    revoked = feed.of(stored)[-1]
    assert revoked["data"]["unit"]["previousStatus"] == "sold"
    assert revoked["data"]["booking"] is None


def test_a_revoked_unit_is_sold_anew(stored: Unit, office: Office, admin: Desk) -> None:
    first = office.sold(stored)
    admin.did(stored, "revoke-sale")
    admin.did(stored, "put-on-sale")
    second = office.sold(stored)
    assert first.reference != second.reference
    assert admin.booking(first.reference)["status"] == "refund-due"
    assert admin.booking(second.reference)["status"] == "sold"


def test_the_way_to_the_sale_is_told_event_by_event(stored: Unit, office: Office, feed: Feed) -> None:
    held = office.sold(stored)
    told = [
        (
            event["type"],
            event["data"]["unit"]["previousStatus"],
            event["data"]["unit"]["status"],
            event["data"]["booking"],
        )
        for event in feed.of(stored)
    ]
    booking = {"reference": held.reference}
    assert told == [
        ("unit.held", "available", "held", None),
        ("unit.reserved", "held", "reserved", booking),
        ("unit.sold", "reserved", "sold", booking),
    ]
    assert chain_is_unbroken(feed.of(stored))


def test_an_archived_unit_stays_so_until_it_is_put_on_sale(stored: Unit, desk: Desk, feed: Feed) -> None:
    assert desk.did(stored, "archive")["archived"] is True
    conflict(desk.act(stored, "archive"), "transition-not-allowed", "unavailable")
    conflict(stored.patch({"status": "available"}), "transition-not-allowed", "unavailable", "status")
    assert stored.patch({"bedrooms": 1}).status_code == 200
    answer = desk.did(stored, "put-on-sale")
    assert (answer["status"], answer["archived"]) == ("available", False)
    assert feed.types_of(stored) == ["unit.unavailable", "unit.available"]
    assert stored.patch({"status": "unavailable"}).status_code == 200
    assert stored.patch({"status": "available"}).status_code == 200


def test_a_unit_off_sale_is_archived_with_an_event(off_sale: Unit, desk: Desk, feed: Feed) -> None:
    assert desk.did(off_sale, "archive")["archived"] is True
    (event,) = feed.of(off_sale)
    unit = event["data"]["unit"]
    assert (unit["previousStatus"], unit["status"]) == ("unavailable", "unavailable")


def test_the_deposit_can_be_confirmed_at_the_unit_too(
    stored: Unit, office: Office, desk: Desk, feed: Feed
) -> None:
    held = office.signed(stored)
    answer = desk.did(stored, "confirm-deposit")
    assert (answer["status"], answer["bookingReference"]) == ("reserved", held.reference)
    assert feed.of(stored)[-1]["data"]["booking"] == {"reference": held.reference}


@pytest.mark.parametrize("action", WITHOUT_A_BODY)
def test_an_action_that_needs_no_body_takes_no_fields(stored: Unit, desk: Desk, action: str) -> None:
    etag = stored.etag
    invalid(desk.act(stored, action, {"reason": "x", "until": None}), "/reason", "/until")
    invalid(desk.act(stored, action, []), "")
    assert stored.etag == etag


@pytest.mark.parametrize("body", [None, {}, "", "{}"])
def test_no_body_and_an_empty_one_are_the_same(stored: Unit, desk: Desk, body: object) -> None:
    assert desk.act(stored, "archive", body).status_code == 200


def test_an_unknown_unit_is_not_found(unit: Unit, desk: Desk) -> None:
    problem(desk.act(unit, "open"), 404)
    assert not unit.exists
