"""A payment system tells that a deposit was paid: every answer that there is."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from uuid import uuid4

import httpx
import pytest

from tests.support import states
from tests.support.app import InProcessApp
from tests.support.backoffice import BUYER, Desk
from tests.support.buying import Buyer, Hold
from tests.support.client import Unit, integration_client
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.payment_system import CALLBACK, Till, signed_headers
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql

LOGGED_WITHIN_SECONDS = 10


def a_payment() -> str:
    return f"pay_{uuid4().hex}"


def test_the_deposit_is_paid_and_the_unit_reserved(
    till: Till, signed: Hold, stored: Unit, desk: Desk, feed: Feed
) -> None:
    payment = a_payment()
    response = till.tell(payment, signed.read())
    assert response.json() == {"reference": signed.reference, "status": "reserved"}
    assert response.headers["cache-control"] == "no-store"
    assert stored.read()["status"] == "reserved"
    assert signed.read()["depositConfirmedAt"] is not None
    assert feed.types_of(stored)[-2:] == ["unit.held", "unit.reserved"]
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["actor"]) == (
        "confirm-deposit",
        {"kind": "payment", "id": payment, "name": None},
    )
    assert entry["requestId"] == response.headers["x-request-id"]


def test_the_same_payment_again_is_the_same_answer_and_changes_nothing(
    till: Till, signed: Hold, stored: Unit, desk: Desk, feed: Feed
) -> None:
    payment, booking = a_payment(), signed.read()
    assert till.told(payment, booking) == "reserved"
    before = (stored.etag, feed.types_of(stored), len(desk.history(stored)), signed.read())
    for _ in range(3):
        assert till.told(payment, booking) == "reserved"
    assert (stored.etag, feed.types_of(stored), len(desk.history(stored)), signed.read()) == before


def test_a_payment_that_is_told_again_later_hears_what_has_become_of_the_booking(
    till: Till, signed: Hold, desk: Desk
) -> None:
    payment, booking = a_payment(), signed.read()
    assert till.told(payment, booking) == "reserved"
    desk.did_to_booking(signed.reference, "close-sale")
    assert till.told(payment, booking) == "sold"


def test_a_second_payment_is_refused_and_says_which_to_pay_back(
    till: Till, signed: Hold, lines: Callable[[str], list[str]]
) -> None:
    first, second = a_payment(), a_payment()
    till.told(first, signed.read())
    body = conflict(till.tell(second, signed.read()), "transition-not-allowed", "reserved")
    assert body["detail"] == f"The deposit was paid by the payment {first}: pay {second} back to the buyer."
    assert till.told(first, signed.read()) == "reserved"
    (warning,) = logged(lines, f'"paymentId":"{second}"')
    assert '"level":"warning"' in warning
    assert f'"reference":"{signed.reference}"' in warning


@pytest.mark.parametrize("amount", ["0", "0.01", "74692.49", "74692.51", "74693", "999999999999.99"])
def test_another_amount_is_refused_with_the_one_that_is_due(till: Till, signed: Hold, amount: str) -> None:
    booking = signed.read()
    due = booking["terms"]["depositSar"]
    assert Decimal(amount) != due
    body = invalid(till.tell(a_payment(), booking, Decimal(amount)), "/amountSar")
    assert body["errors"][0]["message"] == f"The deposit of this booking is {due:.2f} SAR."
    assert signed.read()["status"] == "signed"


def test_where_there_is_no_deposit_nothing_confirms_it(till: Till, buyer: Buyer, unit: Unit) -> None:
    unit.create({"type": "apartment", "areaSqm": 100, "priceSar": 900_000})
    held = buyer.hold(unit)
    held.sign()
    invalid(till.tell(a_payment(), held.read(), 1), "/amountSar")
    assert till.told(a_payment(), held.read()) == "reserved"


def test_the_dearest_deposit_that_there_can_be_is_taken(till: Till, buyer: Buyer, unit: Unit) -> None:
    terms = {"vatIncluded": False, "vatRate": 100, "depositPercent": 100}
    unit.create({"type": "tower", "areaSqm": 100, "priceSar": Decimal("999999999999.99"), **terms})
    held = buyer.hold(unit)
    held.sign()
    assert held.read()["terms"]["depositSar"] == Decimal("1999999999999.98")
    assert till.told(a_payment(), held.read()) == "reserved"


def test_money_before_the_signature_is_not_taken(
    till: Till, held: Hold, lines: Callable[[str], list[str]]
) -> None:
    payment = a_payment()
    conflict(till.tell(payment, held.read()), "not-signed", "held")
    assert held.read()["status"] == "open"
    assert logged(lines, f'"paymentId":"{payment}"')
    held.sign()
    assert till.told(payment, held.read()) == "reserved"


@pytest.mark.parametrize("reference", ["222-222-222", "nonsense", "", "x" * 50, "حجز"])
def test_an_unknown_booking_is_told_and_logged(
    till: Till, reference: str, lines: Callable[[str], list[str]]
) -> None:
    payment = a_payment()
    problem(till.send({"id": payment, "reference": reference, "amountSar": 1}), 404)
    assert logged(lines, f'"paymentId":"{payment}"')


def test_a_reference_may_be_written_as_people_write_it(till: Till, signed: Hold) -> None:
    booking = {**signed.read(), "reference": signed.reference.lower().replace("-", "")}
    response = till.tell(a_payment(), booking)
    assert response.json() == {"reference": signed.reference, "status": "reserved"}


def test_late_money_for_a_free_unit_reserves_it_again(
    till: Till, signed: Hold, stored: Unit, feed: Feed
) -> None:
    assert signed.cancel().status_code == 204
    payment = a_payment()
    assert till.told(payment, signed.read()) == "reserved"
    assert feed.types_of(stored)[-3:] == ["unit.released", "unit.held", "unit.reserved"]
    assert chain_is_unbroken(feed.of(stored))
    assert till.told(payment, signed.read()) == "reserved"
    conflict(till.tell(a_payment(), signed.read()), "transition-not-allowed", "reserved")


def test_late_money_for_a_hold_that_lapsed_reserves_the_unit_again(
    till: Till, buyer: Buyer, stored: Unit, sql: Sql, feed: Feed
) -> None:
    held = signed_and_lapsed(buyer, stored, sql)
    assert till.told(a_payment(), held.read()) == "reserved"
    assert feed.types_of(stored)[-3:] == ["unit.released", "unit.held", "unit.reserved"]


def test_late_money_for_a_unit_that_is_gone_is_due_back(
    till: Till, signed: Hold, stored: Unit, desk: Desk, lines: Callable[[str], list[str]]
) -> None:
    assert signed.cancel().status_code == 204
    desk.did(stored, "close-sale", BUYER)
    payment = a_payment()
    assert till.told(payment, signed.read()) == "refund-due"
    assert till.told(payment, signed.read()) == "refund-due"
    conflict(till.tell(a_payment(), signed.read()), "transition-not-allowed", "sold")
    assert logged(lines, f'"paymentId":"{payment}"')
    desk.did_to_booking(signed.reference, "mark-refunded")
    assert till.told(payment, signed.read()) == "refunded"


def test_what_staff_confirmed_first_is_told_the_same(till: Till, signed: Hold, desk: Desk) -> None:
    desk.did_to_booking(signed.reference, "confirm-deposit")
    payment = a_payment()
    assert till.told(payment, signed.read()) == "reserved"
    conflict(till.tell(a_payment(), signed.read()), "transition-not-allowed", "reserved")
    assert desk.did_to_booking(signed.reference, "confirm-deposit")["status"] == "reserved"


def test_many_at_once_have_one_effect(
    server: InProcessApp, signed: Hold, stored: Unit, desk: Desk, feed: Feed
) -> None:
    booking, payment = signed.read(), a_payment()

    def tell(payment_id: str) -> int:
        with integration_client(server.address, None) as http:
            return Till(http).tell(payment_id, booking).status_code

    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(tell, [payment] * 8))
    assert statuses == [200] * 8
    assert feed.types_of(stored) == ["unit.held", "unit.reserved"]
    assert [entry["action"] for entry in desk.history(stored)].count("confirm-deposit") == 1


def test_of_two_payments_at_once_one_is_to_be_paid_back(server: InProcessApp, signed: Hold) -> None:
    booking = signed.read()

    def tell(payment_id: str) -> int:
        with integration_client(server.address, None) as http:
            return Till(http).tell(payment_id, booking).status_code

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(tell, [a_payment() for _ in range(4)]))
    assert statuses == [200, 409, 409, 409]


def test_the_booking_of_the_api_says_nothing_of_the_payment(till: Till, signed: Hold, desk: Desk) -> None:
    payment = a_payment()
    till.told(payment, signed.read())
    assert payment not in str(signed.read()) + str(desk.booking(signed.reference))


def test_without_a_payment_page_there_is_no_callback(without_payments: httpx.Client) -> None:
    for method in ("POST", "GET"):
        answer = without_payments.request(method, CALLBACK, headers=signed_headers(b""))
        assert problem(answer, 404)["type"] == "/problems/not-found"


def logged(lines: Callable[[str], list[str]], told: str) -> list[str]:
    """A line is written when its request is over, or a moment later."""
    give_up_at = time.monotonic() + LOGGED_WITHIN_SECONDS
    while not (found := lines(told)) and time.monotonic() < give_up_at:
        time.sleep(0.02)
    return found


def signed_and_lapsed(buyer: Buyer, unit: Unit, sql: Sql) -> Hold:
    """A longer hold is only tried where the machine was too slow to sign the shorter one."""
    for seconds in (0.2, 1, 5, 30):
        states.settle(sql, unit, holdSeconds=seconds)
        held = buyer.hold(unit)
        in_time = held.try_to_sign().status_code == 200
        states.wait_until(sql, held.ends)
        if in_time:
            states.settle(sql, unit, holdSeconds=None)
            return held
    raise AssertionError("no hold was long enough to be signed")
