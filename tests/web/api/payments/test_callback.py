"""A payment system reports that a deposit was paid: whose word is taken, and every answer that there is."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from uuid import uuid4

import pytest

from holdfast.domain.payment import LINK_PREFIX
from holdfast.web.api.payments.callback import CALLBACK_BODY_LIMIT
from tests.support.app import InProcessApp, running_app
from tests.support.backoffice import Desk
from tests.support.bodies import full, without
from tests.support.buying import BUYER, Buyer, Hold
from tests.support.client import Unit, integration_client
from tests.support.feed import Feed, chain_is_unbroken
from tests.support.payment_system import CALLBACK, SECRET, Till, signed_headers
from tests.support.problems import conflict, invalid, problem
from tests.support.server import wait_until
from tests.support.sql import Sql

PAYMENT: dict[str, object] = {"id": "pay_1", "reference": "222-222-222", "amountSar": Decimal("1.00")}
BODY = b'{"id":"pay_1","reference":"222-222-222","amountSar":1.00}'
UNSIGNED = {"X-Payment-Signature": "sha256=" + "0" * 64}

Logged = Callable[[str], list[str]]


def a_payment() -> str:
    return f"pay_{uuid4().hex}"


@pytest.fixture
def logged(server: InProcessApp) -> Logged:
    """The lines of the server's log that tell of something, written once a request is over."""

    def find(told: str) -> list[str]:
        wait_until(lambda: told in server.log.read_text())
        return [line for line in server.log.read_text().splitlines() if told in line]

    return find


# What becomes of a payment


def test_the_deposit_is_paid_and_the_unit_reserved_however_often_it_is_reported(
    till: Till, signed: Hold, stored: Unit, desk: Desk, feed: Feed
) -> None:
    payment, booking = a_payment(), signed.read()
    response = till.tell(payment, booking)
    assert response.json() == {"reference": signed.reference, "status": "reserved"}
    assert response.headers["cache-control"] == "no-store"
    assert stored.read()["status"] == "reserved"
    assert signed.read()["depositConfirmedAt"] is not None
    entry = desk.last_entry(stored)
    actor = {"kind": "payment", "id": payment, "name": None}
    assert (entry["action"], entry["actor"]) == ("confirm-deposit", actor)
    assert entry["requestId"] == response.headers["x-request-id"]
    before = (stored.etag, desk.history(stored), signed.read())
    assert till.told(payment, booking) == "reserved"
    assert (stored.etag, desk.history(stored), signed.read()) == before
    assert feed.types_of(stored) == ["unit.held", "unit.reserved"]
    assert payment not in str(signed.read()) + str(desk.booking(signed.reference))
    desk.did_to_booking(signed.reference, "close-sale")
    assert till.told(payment, booking) == "sold"


def test_many_reports_at_once_have_one_effect(
    till: Till, signed: Hold, stored: Unit, desk: Desk, feed: Feed
) -> None:
    payment, booking = a_payment(), signed.read()
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: till.told(payment, booking), range(8))) == ["reserved"] * 8
    assert feed.types_of(stored) == ["unit.held", "unit.reserved"]
    assert [entry["action"] for entry in desk.history(stored)].count("confirm-deposit") == 1


def test_a_second_payment_is_refused_and_says_which_to_pay_back(
    till: Till, signed: Hold, logged: Logged
) -> None:
    first, second = a_payment(), a_payment()
    till.told(first, signed.read())
    body = conflict(till.tell(second, signed.read()), "transition-not-allowed", "reserved")
    assert body["detail"] == f"The deposit was paid by the payment {first}: refund {second} to the buyer."
    assert till.told(first, signed.read()) == "reserved"
    (warning,) = logged(f'"paymentId":"{second}"')
    assert '"level":"warning"' in warning
    assert f'"reference":"{signed.reference}"' in warning


def test_of_several_payments_at_once_all_but_one_are_to_be_paid_back(till: Till, signed: Hold) -> None:
    booking = signed.read()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: till.tell(a_payment(), booking), range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]


def test_one_payment_confirms_one_booking_of_several_reported_at_once(
    till: Till, new_unit: Callable[..., Unit], buyer: Buyer
) -> None:
    bookings = [buyer.hold(new_unit(f"A-10{number}")) for number in range(4)]
    for booking in bookings:
        booking.sign()
    payment = a_payment()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda booking: till.tell(payment, booking.read()), bookings))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409]
    for booking, answer in zip(bookings, answers, strict=True):
        if answer.status_code == 409:
            detail = conflict(answer, "payment-used", "held")["detail"]
            assert detail == f"The payment {payment} has confirmed another booking."
            # A payment of its own is taken.
            assert till.told(a_payment(), booking.read()) == "reserved"
        else:
            assert till.told(payment, booking.read()) == "reserved"


def test_the_signature_of_a_link_to_the_payment_page_signs_no_callback(till: Till, signed: Hold) -> None:
    link = f"reference={signed.reference}"
    headers = signed_headers(link.encode(), prefix=LINK_PREFIX)
    response = till.http.post(CALLBACK, content=link, headers=headers)
    assert problem(response, 401)["type"] == "/problems/signature-refused"


def test_another_amount_is_refused_with_the_one_that_is_due(till: Till, signed: Hold) -> None:
    booking = signed.read()
    due = booking["terms"]["depositSar"]
    for amount in (Decimal(0), due - Decimal("0.01"), due + Decimal("0.01"), Decimal("999999999999.99")):
        body = invalid(till.tell(a_payment(), booking, amount), "/amountSar")
        assert body["errors"][0]["message"] == f"The deposit of this booking is {due:.2f} SAR."
    assert signed.read()["status"] == "signed"


def test_the_highest_deposit_is_taken(till: Till, buyer: Buyer, unit: Unit) -> None:
    unit.create(full(priceSar=Decimal("999999999999.99"), vatRate=100, depositPercent=100))
    held = buyer.hold(unit)
    held.sign()
    assert held.read()["terms"]["depositSar"] == Decimal("1999999999999.98")
    assert till.told(a_payment(), held.read()) == "reserved"


def test_money_before_the_signature_is_not_taken(till: Till, held: Hold, logged: Logged) -> None:
    payment = a_payment()
    conflict(till.tell(payment, held.read()), "not-signed", "held")
    assert held.read()["status"] == "open"
    assert logged(f'"paymentId":"{payment}"')
    held.sign()
    assert till.told(payment, held.read()) == "reserved"


def test_a_reference_is_read_as_people_write_it_and_an_unknown_one_is_logged(
    till: Till, signed: Hold, logged: Logged
) -> None:
    for reference in ("222-222-222", "nonsense", "", "x" * 50, "حجز"):
        payment = a_payment()
        problem(till.send({"id": payment, "reference": reference, "amountSar": 1}), 404)
        assert logged(f'"paymentId":"{payment}"')
    booking = {**signed.read(), "reference": signed.reference.lower().replace("-", "")}
    response = till.tell(a_payment(), booking)
    assert response.json() == {"reference": signed.reference, "status": "reserved"}


def test_late_money_for_a_free_unit_reserves_it_again(
    till: Till, signed: Hold, stored: Unit, sql: Sql, feed: Feed
) -> None:
    signed.end_now(sql)
    payment = a_payment()
    for _ in range(2):
        assert till.told(payment, signed.read()) == "reserved"
    assert feed.types_of(stored)[-3:] == ["unit.released", "unit.held", "unit.reserved"]
    assert chain_is_unbroken(feed.of(stored))
    conflict(till.tell(a_payment(), signed.read()), "transition-not-allowed", "reserved")


def test_late_money_for_a_unit_that_is_gone_is_due_back(
    till: Till, signed: Hold, stored: Unit, desk: Desk, logged: Logged
) -> None:
    assert signed.cancel().status_code == 204
    desk.did(stored, "close-sale", BUYER)
    payment = a_payment()
    for _ in range(2):
        assert till.told(payment, signed.read()) == "refund-due"
    conflict(till.tell(a_payment(), signed.read()), "transition-not-allowed", "sold")
    assert logged(f'"paymentId":"{payment}"')
    desk.did_to_booking(signed.reference, "mark-refunded")
    assert till.told(payment, signed.read()) == "refunded"


def test_without_a_payment_page_there_is_no_callback(database_url: str) -> None:
    settings = {"HOLDFAST_DATABASE_URL": database_url}
    with (
        running_app(settings, background_work=False) as app,
        integration_client(app.address, None) as http,
    ):
        for method in ("POST", "GET"):
            answer = http.request(method, CALLBACK, headers=signed_headers(b""))
            assert problem(answer, 404)["type"] == "/problems/not-found"


# Signatures


@pytest.mark.parametrize(
    ("headers", "sentence"),
    [
        (
            {"X-Payment-Timestamp": ""},
            "Send `X-Payment-Timestamp` and `X-Payment-Signature: sha256=<hex digest>`.",
        ),
        ({"X-Payment-Signature": "sha1=" + "0" * 40}, "`X-Payment-Signature` must begin with `sha256=`."),
        (UNSIGNED, ""),
        ({"X-Payment-Timestamp": "today"}, "`X-Payment-Timestamp` must be the Unix time in seconds."),
        ({"X-Payment-Timestamp": "1"}, ""),
    ],
)
def test_a_wrong_signature_is_refused_and_says_why(
    till: Till, headers: dict[str, str], sentence: str
) -> None:
    response = till.send(PAYMENT, headers)
    body = problem(response, 401)
    assert body["type"] == "/problems/signature-refused"
    assert response.headers["www-authenticate"] == "PaymentSignature"
    assert body["detail"].startswith(sentence)


def test_the_clocks_may_differ_a_little_and_not_by_more_than_five_minutes(till: Till) -> None:
    for seconds in (-900, 900):
        old = signed_headers(BODY, at=int(time.time()) + seconds)
        body = problem(till.send(BODY.decode(), old), 401)
        assert body["detail"].startswith("The timestamp is more than 300 seconds from now")
    for seconds in (-100, 200):
        problem(till.send(BODY.decode(), signed_headers(BODY, at=int(time.time()) + seconds)), 404)


def test_the_signature_is_of_our_secret_and_of_the_bytes_as_they_are_sent(till: Till, api_key: str) -> None:
    problem(till.send(BODY.decode(), signed_headers(BODY, SECRET + "!")), 401)
    # The same document in other spaces is another body.
    spaced = BODY.replace(b":", b": ")
    problem(till.send(spaced.decode(), signed_headers(BODY)), 401)
    problem(till.send(spaced.decode()), 404)
    problem(till.send(PAYMENT, {"Authorization": f"Bearer {api_key}", "X-Payment-Signature": ""}), 401)


# Bodies


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({"id": ""}, ["/id"]),
        ({"id": "عملية"}, ["/id"]),
        ({"id": "x" * 201}, ["/id"]),
        ({"reference": None}, ["/reference"]),
        ({"reference": "x" * 51}, ["/reference"]),
        ({"reference": "a\x00b"}, ["/reference"]),
        ({"amountSar": "1.00"}, ["/amountSar"]),
        ({"amountSar": -1}, ["/amountSar"]),
        ({"amountSar": Decimal("1.001")}, ["/amountSar"]),
        ({"amountSar": Decimal("1e400")}, ["/amountSar"]),
        ({"amountSar": Decimal("1999999999999.99")}, ["/amountSar"]),
        ({"amountSar": True}, ["/amountSar"]),
        ({"id": 7, "amountSar": None, "currency": "SAR"}, ["/amountSar", "/currency", "/id"]),
    ],
)
def test_every_fault_of_a_body_is_told(till: Till, change: Mapping[str, object], pointers: list[str]) -> None:
    invalid(till.send({**PAYMENT, **change}), *pointers)


def test_nothing_may_be_left_out_and_no_query_added(till: Till) -> None:
    for name in PAYMENT:
        invalid(till.send(without(PAYMENT, name)), f"/{name}")
    for body in ("[]", "null"):
        invalid(till.send(body), "")
    invalid(till.send(PAYMENT, query="?id=pay_1"), "/query/id")


def test_what_is_no_json_or_of_another_type_is_refused(till: Till) -> None:
    for body in ("", "{", '{"id": "a", "id": "b"}', "NaN", "\ufeff{}", "{} {}"):
        problem(till.send(body), 400)
    for content_type in ("text/plain", "", "application/json; charset=latin1"):
        problem(till.send(PAYMENT, {"Content-Type": content_type}), 415)
    problem(till.send(PAYMENT, {"Content-Encoding": "gzip"}), 415)


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE"])
def test_another_method_is_refused_to_those_who_signed_and_told_to_nobody_else(
    till: Till, method: str
) -> None:
    answer = till.send(PAYMENT, method=method)
    problem(answer, 405)
    assert answer.headers["allow"] == "POST"
    problem(till.send(PAYMENT, {"X-Payment-Signature": ""}, method), 401)
    problem(till.send(PAYMENT, UNSIGNED, method), 401)


def test_the_longest_body_is_read_and_a_longer_one_is_not(till: Till) -> None:
    longest = BODY.decode().ljust(CALLBACK_BODY_LIMIT)
    problem(till.send(longest), 404)
    assert problem(till.send(longest + " "), 413)["detail"] == "The body is larger than 64 KiB."
    # A body in pieces counts as a whole.
    for body, status in ((BODY, 404), (BODY + b" " * CALLBACK_BODY_LIMIT, 413)):
        headers = {**signed_headers(body), "Content-Type": "application/json"}
        pieces = (body[start : start + 1000] for start in range(0, len(body), 1000))
        problem(till.http.post(CALLBACK, content=pieces, headers=headers), status)


def test_of_two_faults_the_first_in_order_answers(till: Till, held: Hold) -> None:
    due = held.read()["terms"]["depositSar"]
    text = {"Content-Type": "text/plain"}
    problem(till.send("{", {**UNSIGNED, **text}), 401)
    problem(till.send("{", text), 415)
    problem(till.send("{", query="?x=1"), 400)
    invalid(till.send({**PAYMENT, "amountSar": -1}), "/amountSar")
    # An amount is only wrong for a booking that is known, and before that booking's state matters.
    invalid(till.send({**PAYMENT, "reference": held.reference, "amountSar": due + 1}), "/amountSar")
    problem(till.send({**PAYMENT, "reference": held.reference, "amountSar": due}), 409)
