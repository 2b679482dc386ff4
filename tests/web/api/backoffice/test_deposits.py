"""The deposit is confirmed: by staff or a payment system, once, however often and however late it is said."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from tests.support.backoffice import BOOKINGS, Desk
from tests.support.bodies import full, minimal
from tests.support.buying import BUYER, Hold
from tests.support.client import Unit, number
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.keys import Key
from tests.support.problems import conflict, problem
from tests.support.sql import Sql
from tests.support.unit_rows import stored_version
from tests.web.api.backoffice.conditions import Condition, Watch


def test_a_confirmed_deposit_reserves_the_unit_once(
    stored: Unit, payments: Desk, admin: Desk, feed: Feed, watch: Watch
) -> None:
    held = admin.signed(stored)
    answer = payments.did_to_booking(held.reference, "confirm-deposit")
    assert (answer["status"], answer["reference"]) == ("reserved", held.reference)
    confirmed, until = (
        datetime.fromisoformat(answer[name]) for name in ("depositConfirmedAt", "reservedUntil")
    )
    assert until - confirmed == timedelta(days=14)
    assert answer["depositConfirmedAt"] == stored.read()["updatedAt"]
    assert answer == {**held.read(), "buyer": None}
    assert feed.of(stored)[-1]["data"]["booking"] == {"reference": held.reference}
    before = watch()
    for _ in range(3):
        assert payments.did_to_booking(held.reference, "confirm-deposit") == answer
    assert watch() == before
    for ending in ("close-sale", "revoke-sale"):
        admin.did(stored, ending)
        after, before = {**admin.booking(held.reference), "buyer": None}, watch()
        assert payments.did_to_booking(held.reference, "confirm-deposit") == after
        assert watch() == before


def test_a_payment_system_does_not_learn_who_the_buyer_is(
    stored: Unit, payments: Desk, desk_with: Callable[..., Desk]
) -> None:
    """Unless its key has another scope that may read bookings."""
    sellers = desk_with("payments", "backoffice")
    held = sellers.signed(stored)
    assert BUYER["buyerName"] not in payments.act_on_booking(held.reference, "confirm-deposit").text
    problem(payments.http.get(f"{BOOKINGS}/{held.reference}"), 403)
    other = desk_with("payments", "integration")
    assert other.did_to_booking(held.reference, "confirm-deposit")["buyer"] is None
    seen = sellers.did_to_booking(held.reference, "confirm-deposit")
    assert seen["buyer"]["name"] == BUYER["buyerName"]
    assert seen == sellers.booking(held.reference)


def test_ten_at_once_are_once(stored: Unit, desk: Desk, payments: Desk, watch: Watch) -> None:
    held = desk.signed(stored)
    _, _, noted = watch()
    with ThreadPoolExecutor(10) as pool:
        confirm = payments.did_to_booking
        answers = list(pool.map(lambda _: confirm(held.reference, "confirm-deposit"), range(10)))
    assert all(answer == answers[0] for answer in answers)
    assert watch()[1:] == (["unit.held", "unit.reserved"], noted + 1)


def test_without_a_signature_there_is_nothing_to_confirm(stored: Unit, payments: Desk, desk: Desk) -> None:
    held = desk.held(stored)
    etag = stored.etag
    response = payments.act_on_booking(held.reference, "confirm-deposit")
    # No time is told: it is not the hold that blocks, and waiting for its end would not help.
    refusal = conflict(response, "not-signed", "held")
    assert "holdExpiresAt" not in refusal
    end = stored.read()["holdExpiresAt"]
    assert refusal["detail"] == f"The buyer has not signed yet; the hold ends at {end}."
    assert "retry-after" not in response.headers
    conflict(desk.act(stored, "confirm-deposit"), "not-signed", "held")
    assert stored.etag == etag
    assert held.cancel().status_code == 204
    refusal = conflict(payments.act_on_booking(held.reference, "confirm-deposit"), "not-signed", "available")
    assert refusal["detail"] == "The booking ended without a signature (cancelled): refund the payment."


def test_no_deposit_is_confirmed_all_the_same(unit: Unit, desk: Desk, payments: Desk) -> None:
    unit.create(minimal())
    answer = payments.did_to_booking(desk.signed(unit).reference, "confirm-deposit", {})
    assert answer["status"] == "reserved"
    assert number(answer["terms"]["depositSar"]) == 0


# Late deposits: money is never silently lost


@pytest.fixture(params=["lapsed", "cancelled"])
def ended(request: pytest.FixtureRequest, stored: Unit, desk: Desk, sql: Sql) -> Hold:
    """Signed, and over by the clock or by the buyer's wish."""
    if request.param == "cancelled":
        return desk.cancelled(stored)
    return desk.signed(stored).end_now(sql)


def test_a_late_deposit_reserves_a_free_unit_again_on_the_terms_agreed(
    stored: Unit, ended: Hold, payments: Desk, desk: Desk, feed: Feed, watch: Watch
) -> None:
    assert stored.put(full(priceSar=2_000_000, depositPercent=50, vatRate=5)).status_code == 200
    answer = payments.did_to_booking(ended.reference, "confirm-deposit")
    assert answer["status"] == "reserved"
    assert answer["reservedUntil"] is not None
    assert [number(answer["terms"][name]) for name in ("priceSar", "vatRate")] == [950_000, 15]
    events = feed.of(stored)
    assert [event["type"] for event in events[-3:]] == ["unit.released", "unit.held", "unit.reserved"]
    assert chain_is_unbroken(events)
    booked = [event["data"]["booking"] for event in events[-2:]]
    assert booked == [None, {"reference": ended.reference}]
    before = watch()
    assert payments.did_to_booking(ended.reference, "confirm-deposit") == answer
    assert watch() == before
    assert desk.did_to_booking(ended.reference, "close-sale")["status"] == "sold"
    assert ended.read()["status"] == "sold"


def test_a_late_deposit_is_two_versions_and_one_entry_of_the_history(
    stored: Unit, payments: Desk, payments_key: Key, desk: Desk, sql: Sql
) -> None:
    reference = desk.cancelled(stored).reference
    noted, version = len(desk.history(stored)), stored_version(sql, stored)
    answer = payments.did_to_booking(reference, "confirm-deposit")
    assert stored_version(sql, stored) == version + 2
    entry, *older = desk.history(stored)
    assert len(older) == noted
    assert (entry["action"], entry["bookingReference"]) == ("confirm-deposit", reference)
    assert entry["actor"]["id"] == str(payments_key.id)
    assert entry["before"] == {"status": "available", "reservedUntil": None, "bookingStatus": "cancelled"}
    assert entry["after"] == {
        "status": "reserved",
        "reservedUntil": answer["reservedUntil"],
        "bookingStatus": "reserved",
    }


@pytest.mark.parametrize("condition", [Condition.HELD, Condition.RESERVED, Condition.ARCHIVED])
def test_for_a_unit_that_is_taken_the_deposit_is_due_back(
    condition: Condition, stored: Unit, desk: Desk, payments: Desk, watch: Watch
) -> None:
    late = desk.cancelled(stored)
    other = desk.bring(stored, condition)
    etag, told, _ = watch()
    answer = payments.did_to_booking(late.reference, "confirm-deposit")
    assert answer["status"] == "refund-due"
    assert answer["depositConfirmedAt"] is not None
    assert watch()[:2] == (etag, told)
    if other is not None:
        seen = other.read()["status"]
        assert seen == ("open" if condition is Condition.HELD else condition)


def test_a_deposit_that_is_due_back_reserves_nothing_later(
    stored: Unit, ended: Hold, payments: Desk, admin: Desk
) -> None:
    admin.did(stored, "close-sale", BUYER)
    due = payments.did_to_booking(ended.reference, "confirm-deposit")
    assert due["status"] == "refund-due"
    admin.did(stored, "revoke-sale")
    admin.did(stored, "put-on-sale")
    assert payments.did_to_booking(ended.reference, "confirm-deposit") == due
    assert stored.read()["status"] == "available"


def test_of_two_late_deposits_one_gets_the_unit(stored: Unit, desk: Desk, payments: Desk, feed: Feed) -> None:
    late = [desk.cancelled(stored), desk.cancelled(stored)]
    with ThreadPoolExecutor(2) as pool:
        confirm = payments.did_to_booking
        answers = list(pool.map(lambda held: confirm(held.reference, "confirm-deposit"), late))
    assert sorted(answer["status"] for answer in answers) == ["refund-due", "reserved"]
    assert feed.types_of(stored)[-2:] == ["unit.held", "unit.reserved"]
    assert chain_is_unbroken(feed.of(stored))
