"""Deposits that are given back, and links that are given out anew."""

import pytest

from tests.support.backoffice import BOOKING_FIELDS, Desk, Held, succeeded
from tests.support.client import Unit
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.web.api.backoffice.conditions import MID_SALE, Condition, Office


@pytest.fixture
def due(stored: Unit, office: Office, desk: Desk) -> Held:
    """Its deposit is due back."""
    held = office.reserved(stored)
    desk.did(stored, "cancel-reservation")
    return held


def test_a_refund_is_marked_once(stored: Unit, due: Held, desk: Desk, feed: Feed) -> None:
    etag, told, noted = stored.etag, feed.types_of(stored), len(desk.history(stored))
    answers = [desk.did_to_booking(due.reference, "mark-refunded") for _ in range(3)]
    assert {answer["status"] for answer in answers} == {"refunded"}
    assert succeeded(due.read())["status"] == "refunded"
    assert (stored.etag, feed.types_of(stored)) == (etag, told)
    entry, *older = desk.history(stored)
    assert len(older) == noted
    assert (entry["action"], entry["bookingReference"]) == ("mark-refunded", due.reference)
    assert (entry["before"], entry["after"]) == (
        {"bookingStatus": "refund-due"},
        {"bookingStatus": "refunded"},
    )


def test_what_is_refunded_is_not_reserved_again(stored: Unit, due: Held, desk: Desk) -> None:
    desk.did_to_booking(due.reference, "mark-refunded")
    assert desk.did_to_booking(due.reference, "confirm-deposit")["status"] == "refunded"
    assert stored.read()["status"] == "available"


@pytest.mark.parametrize("condition", MID_SALE)
def test_only_what_is_due_is_refunded(condition: Condition, stored: Unit, office: Office, desk: Desk) -> None:
    held = office.bring(stored, condition)
    assert held is not None
    noted = len(desk.history(stored))
    conflict(desk.act_on_booking(held.reference, "mark-refunded"), "transition-not-allowed", condition.status)
    assert len(desk.history(stored)) == noted


def test_a_cancelled_booking_has_nothing_to_refund(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.signed(stored)
    assert held.cancel().status_code == 204
    conflict(desk.act_on_booking(held.reference, "mark-refunded"), "transition-not-allowed", "available")


def test_the_unit_may_be_somebody_elses_when_the_refund_comes(
    stored: Unit, due: Held, office: Office, desk: Desk
) -> None:
    other = office.reserved(stored)
    etag = stored.etag
    assert desk.did_to_booking(due.reference, "mark-refunded")["status"] == "refunded"
    assert desk.booking(other.reference)["status"] == "reserved"
    assert stored.etag == etag


def reissued(desk: Desk, held: Held) -> Held:
    answer = desk.did_to_booking(held.reference, "reissue-link")
    assert set(answer) == BOOKING_FIELDS | {"token", "url"}
    assert answer["url"].endswith(f"/p/{answer['projectSlug']}/bookings/{held.reference}/{answer['token']}")
    assert answer["token"] != held.token
    return Held(held.http, held.reference, answer["token"])


@pytest.mark.parametrize("condition", MID_SALE)
def test_a_new_link_opens_the_booking_and_the_old_one_nothing(
    condition: Condition, stored: Unit, office: Office, desk: Desk, feed: Feed
) -> None:
    held = office.bring(stored, condition)
    assert held is not None
    etag, told = stored.etag, feed.types_of(stored)
    anew = reissued(desk, held)
    for response in (held.read(), held.sign(), held.cancel()):
        problem(response, 404)
    assert succeeded(anew.read()) == desk.booking(held.reference)
    assert (stored.etag, feed.types_of(stored)) == (etag, told)


@pytest.mark.parametrize("status", ["cancelled", "refund-due", "refunded"])
def test_an_ended_booking_can_be_opened_anew_too(
    status: str, stored: Unit, office: Office, desk: Desk
) -> None:
    held = office.signed(stored) if status == "cancelled" else office.reserved(stored)
    desk.did_to_booking(held.reference, "cancel")
    if status == "refunded":
        desk.did_to_booking(held.reference, "mark-refunded")
    anew = reissued(desk, held)
    assert succeeded(anew.read())["status"] == status
    problem(held.read(), 404)


def test_the_buyer_goes_on_with_the_new_link(stored: Unit, office: Office, desk: Desk) -> None:
    anew = reissued(desk, office.held(stored))
    assert anew.sign().status_code == 200
    last = reissued(desk, anew)
    problem(anew.cancel(), 404)
    assert last.cancel().status_code == 204
    assert stored.read()["status"] == "available"


def test_a_new_link_is_an_entry_without_the_link(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.held(stored)
    anew = reissued(desk, held)
    page = desk.history_page(stored)
    entry = page["entries"][0]
    assert (entry["action"], entry["bookingReference"]) == ("reissue-link", held.reference)
    assert (entry["before"], entry["after"]) == ({}, {})
    assert anew.token not in str(page)


@pytest.mark.parametrize("action", ["mark-refunded", "reissue-link", "cancel"])
def test_no_fields_are_taken(stored: Unit, due: Held, desk: Desk, action: str) -> None:
    invalid(desk.act_on_booking(due.reference, action, {"amount": 1}), "/amount")
    assert desk.booking(due.reference)["status"] == "refund-due"
    assert due.read().status_code == 200
