"""The deposit is confirmed: by staff or a payment system, once, however often it is said."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.backoffice import BOOKINGS, BUYER, PROJECTS, Desk, Held, project_url, succeeded, unit_url
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client, number
from tests.support.feed import Feed
from tests.support.keys import Key
from tests.support.problems import conflict, invalid, problem
from tests.web.api.backoffice.conditions import Office


def test_the_booking_is_reserved_for_its_time(stored: Unit, office: Office, payments: Desk) -> None:
    held = office.signed(stored)
    answer = payments.did_to_booking(held.reference, "confirm-deposit")
    assert (answer["status"], answer["reference"]) == ("reserved", held.reference)
    confirmed, until = (
        datetime.fromisoformat(answer[name]) for name in ("depositConfirmedAt", "reservedUntil")
    )
    assert until - confirmed == timedelta(days=14)
    assert answer["depositConfirmedAt"] == stored.read()["updatedAt"]
    assert answer == succeeded(held.read())


def test_ten_times_are_once(stored: Unit, office: Office, payments: Desk, desk: Desk, feed: Feed) -> None:
    held = office.signed(stored)
    answers = [payments.did_to_booking(held.reference, "confirm-deposit") for _ in range(10)]
    assert all(answer == answers[0] for answer in answers)
    assert feed.types_of(stored) == ["unit.held", "unit.reserved"]
    assert [entry["action"] for entry in desk.history(stored)].count("confirm-deposit") == 1


def test_ten_at_once_are_once(
    server: InProcessApp, payments_key: Key, stored: Unit, office: Office, desk: Desk, feed: Feed
) -> None:
    held = office.signed(stored)

    def confirm(_: int) -> dict[str, object]:
        with integration_client(server.address, payments_key.text) as http:
            return Desk(http).did_to_booking(held.reference, "confirm-deposit")

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(confirm, range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert feed.types_of(stored) == ["unit.held", "unit.reserved"]
    assert [entry["action"] for entry in desk.history(stored)].count("confirm-deposit") == 1


@pytest.mark.parametrize("ending", ["cancel", "close-sale"])
def test_once_confirmed_it_stays_so_whatever_came_after(
    stored: Unit, office: Office, payments: Desk, desk: Desk, feed: Feed, ending: str
) -> None:
    held = office.reserved(stored)
    after = desk.did_to_booking(held.reference, ending)
    told, noted = feed.types_of(stored), len(desk.history(stored))
    assert payments.did_to_booking(held.reference, "confirm-deposit") == after
    assert (feed.types_of(stored), len(desk.history(stored))) == (told, noted)


def test_before_the_signature_there_is_nothing_to_confirm(
    stored: Unit, office: Office, payments: Desk
) -> None:
    held = office.held(stored)
    etag = stored.etag
    response = payments.act_on_booking(held.reference, "confirm-deposit")
    # No time is told: it is not the hold that blocks, and waiting for its end would not help.
    refusal = conflict(response, "not-signed", "held")
    assert "holdExpiresAt" not in refusal
    end = stored.read()["holdExpiresAt"]
    assert refusal["detail"] == f"The buyer has not signed yet; the hold ends at {end}."
    assert "retry-after" not in response.headers
    assert stored.etag == etag
    assert held.sign().status_code == 200
    assert payments.did_to_booking(held.reference, "confirm-deposit")["status"] == "reserved"


def test_a_cancelled_booking_that_nobody_signed_is_not_confirmed(
    stored: Unit, office: Office, payments: Desk
) -> None:
    held = office.held(stored)
    assert held.cancel().status_code == 204
    refusal = conflict(payments.act_on_booking(held.reference, "confirm-deposit"), "not-signed", "available")
    assert refusal["detail"] == "The booking ended without a signature (cancelled): pay the money back."


def test_no_deposit_is_confirmed_all_the_same(unit: Unit, office: Office, payments: Desk) -> None:
    unit.create(minimal())
    held = office.signed(unit)
    answer = payments.did_to_booking(held.reference, "confirm-deposit")
    assert answer["status"] == "reserved"
    assert number(answer["terms"]["depositSar"]) == 0


def test_an_unknown_booking_is_not_found(payments: Desk, desk: Desk) -> None:
    for reference in ("AAA-AAA-AAA", "x", "1", "%20", "%00", "a" * 500):
        for who in (payments, desk):
            problem(who.act_on_booking(reference, "confirm-deposit"), 404)


def test_a_reference_that_is_not_text_is_invalid(payments: Desk) -> None:
    invalid(payments.act_on_booking("%FF", "confirm-deposit"), "/path/reference")
    both = payments.act_on_booking("%FF", "confirm-deposit?now=1", {"amount": 1})
    invalid(both, "/path/reference", "/query/now", "/amount")


def test_a_reference_that_is_not_text_is_told_with_the_other_faults(desk: Desk, public: httpx.Client) -> None:
    invalid(desk.act_on_booking("%FF", "extend", {"until": "soon"}), "/path/reference", "/until")
    invalid(desk.http.get(f"{BOOKINGS}/%FF", params={"x": 1}), "/path/reference", "/query/x")
    held = Held(public, "%FF", "any")
    # The body of one whose token opens nothing is not read.
    invalid(held.sign({**BUYER, "buyerPhone": "call me"}), "/path/reference")
    invalid(held.read(), "/path/reference")
    invalid(held.cancel(), "/path/reference")


def test_a_reference_is_read_as_people_write_it(stored: Unit, office: Office, desk: Desk) -> None:
    reference = office.held(stored).reference
    assert desk.booking(reference.lower())["reference"] == reference


def test_it_takes_no_body(stored: Unit, office: Office, payments: Desk) -> None:
    held = office.signed(stored)
    response = payments.act_on_booking(held.reference, "confirm-deposit", {"amount": 1})
    invalid(response, "/amount")
    assert stored.read()["status"] == "held"
    assert payments.did_to_booking(held.reference, "confirm-deposit", {})["status"] == "reserved"


def test_a_payment_system_does_this_and_nothing_else(
    stored: Unit, office: Office, payments: Desk, project: Project
) -> None:
    held = office.reserved(stored)
    etag = stored.etag
    booking = f"{BOOKINGS}/{held.reference}"
    answers = [
        payments.http.get(BOOKINGS),
        payments.http.get(booking),
        payments.http.get(PROJECTS),
        payments.http.post(PROJECTS, json={"slug": "x-y", "name": "X"}),
        payments.http.get(project_url(project)),
        payments.http.patch(project_url(project), json={"name": "X"}),
        payments.http.get(f"{project_url(project)}/layout"),
        payments.http.put(f"{project_url(project)}/layout", json={"units": []}),
        payments.http.get(f"{unit_url(stored)}/history"),
        payments.act(stored, "close-sale", BUYER),
        payments.act(stored, "confirm-deposit"),
        payments.http.get("/v1/backoffice/nothing"),
        payments.http.get(stored.url),
    ]
    others = ("cancel", "close-sale", "extend", "mark-refunded", "reissue-link")
    answers += [payments.act_on_booking(held.reference, action) for action in others]
    for answer in answers:
        problem(answer, 403)
        assert 'error="insufficient_scope"' in answer.headers["www-authenticate"]
    assert stored.etag == etag


def test_a_booking_is_cancelled_by_its_reference(
    stored: Unit, office: Office, desk: Desk, feed: Feed
) -> None:
    held = office.signed(stored)
    assert desk.did_to_booking(held.reference, "cancel")["status"] == "cancelled"
    assert stored.read()["status"] == "available"
    again = office.reserved(stored)
    assert desk.did_to_booking(again.reference, "cancel")["status"] == "refund-due"
    assert feed.types_of(stored)[-1] == "unit.released"
    for reference in (held.reference, again.reference):
        conflict(desk.act_on_booking(reference, "cancel"), "transition-not-allowed", "available")


def test_a_sale_is_closed_by_the_reference_of_its_booking(
    stored: Unit, office: Office, desk: Desk, feed: Feed
) -> None:
    held = office.reserved(stored)
    answer = desk.did_to_booking(held.reference, "close-sale")
    assert (answer["status"], answer["closedAt"]) == ("sold", stored.read()["updatedAt"])
    assert feed.of(stored)[-1]["data"]["booking"] == {"reference": held.reference}
    for action in ("close-sale", "cancel", "mark-refunded"):
        conflict(desk.act_on_booking(held.reference, action), "transition-not-allowed", "sold")


def test_a_sale_needs_a_reservation(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.signed(stored)
    response = desk.act_on_booking(held.reference, "close-sale")
    refusal = conflict(response, "transition-not-allowed", "held")
    # To wait for the end of the hold would not help this booking.
    assert (refusal["detail"], "holdExpiresAt" in refusal) == ("The deposit is not confirmed yet.", False)
    assert "retry-after" not in response.headers
    invalid(desk.act_on_booking(held.reference, "close-sale", BUYER), *(f"/{name}" for name in BUYER))
    assert held.cancel().status_code == 204
    conflict(desk.act_on_booking(held.reference, "close-sale"), "transition-not-allowed", "available")
