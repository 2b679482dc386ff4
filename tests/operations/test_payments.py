"""Deposits: the payment page of a buyer, the reports that count, and what is logged."""

import logging
from datetime import timedelta
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import HoldLapsed, InvalidInput, NotSigned, TransitionNotAllowed, UnknownBooking
from holdfast.domain.payment import PaymentRequest
from holdfast.domain.signature import SignatureProblem, sign
from holdfast.domain.transitions import Caller
from holdfast.operations.bookings import Bookings, FoundBooking
from holdfast.operations.payments import HostedPaymentPage, Payment, PaymentPage, Payments
from holdfast.operations.units import PatchUnit
from holdfast.storage.database import Database, current_time
from tests.operations.buyers import OMAR, STAFF, hold
from tests.support.inventory import SLUG
from tests.support.sales import BUYER, make_lapse

SECRET = "a secret of payments"
PAGE = "https://pay.example.com/deposits"
CALLBACK = "https://units.example.com/v1/payments/callback"
BACK = "https://units.example.com/p/palm-court/bookings/1"
DUE = Decimal("100000.00")
DUE_BACK = "a payment came too late and is due back"
STAFF_HAD_CONFIRMED = "a payment was reported for a deposit that staff had confirmed"


@pytest.fixture
async def paying(database: Database, selling: Bookings) -> Payments:
    inventory = selling._units
    key = (await inventory.project_id(SLUG), "A-1")
    await inventory.write(PatchUnit(key, {"deposit_percent": Decimal(10)}))
    till = PaymentPage(HostedPaymentPage(PAGE, SECRET), SECRET, CALLBACK)
    return Payments(database, inventory, selling, till)


async def signed(selling: Bookings, code: str = "A-1") -> FoundBooking:
    held = await hold(selling, code=code)
    await selling.sign(await selling.find(held.booking.reference), BUYER, "request-2")
    return await selling.find(held.booking.reference)


def paid(found: FoundBooking, payment_id: str = "pay_1", amount: Decimal = DUE) -> Payment:
    return Payment(payment_id, found.booking.reference, amount)


async def now(database: Database) -> float:
    async with database.reading() as connection:
        return (await current_time(connection)).timestamp()


async def test_a_buyer_who_signed_is_sent_to_the_payment_page(paying: Payments, selling: Bookings) -> None:
    found = await signed(selling)
    address = await paying.address_for(found, BACK, "ar")
    assert address is not None
    assert address.startswith(f"{PAGE}?reference={found.booking.reference}&amountSar=100000.00&")
    asked = dict(parse_qsl(urlsplit(address).query))
    assert (asked["returnUrl"], asked["callbackUrl"], asked["language"]) == (BACK, CALLBACK, "ar")
    assert asked["timestamp"] == str(int(found.now.timestamp()))


async def test_a_provider_of_ones_own_is_asked_for_the_same(
    database: Database, selling: Bookings, paying: Payments
) -> None:
    asked: list[PaymentRequest] = []

    class OwnProvider:
        async def address_for(self, request: PaymentRequest) -> str:
            asked.append(request)
            return "https://checkout.example.com/session-1"

    own = Payments(database, selling._units, selling, PaymentPage(OwnProvider(), SECRET, CALLBACK))
    found = await signed(selling)
    assert await own.address_for(found, BACK, "en") == "https://checkout.example.com/session-1"
    expires_at = found.booking.hold_expires_at
    assert expires_at is not None
    assert asked == [
        PaymentRequest(found.booking.reference, DUE, BACK, CALLBACK, "en", expires_at, found.now)
    ]


async def test_without_a_provider_or_a_deposit_there_is_nowhere_to_pay(
    database: Database, selling: Bookings, paying: Payments
) -> None:
    closed = Payments(database, selling._units, selling, PaymentPage())
    assert not closed.is_open
    assert await closed.address_for(await signed(selling), BACK, "en") is None
    assert await paying.address_for(await signed(selling, "A-2"), BACK, "en") is None


async def test_nobody_is_sent_to_pay_before_the_signature_or_twice(
    paying: Payments, selling: Bookings
) -> None:
    held = await hold(selling)
    with pytest.raises(NotSigned):
        await paying.address_for(await selling.find(held.booking.reference), BACK, "en")
    await selling.sign(await selling.find(held.booking.reference), BUYER, "request-2")
    found = await selling.find(held.booking.reference)
    await paying.confirm(paid(found), "request-3")
    with pytest.raises(TransitionNotAllowed):
        await paying.address_for(await selling.find(held.booking.reference), BACK, "en")


async def test_nobody_is_sent_to_pay_for_a_hold_that_is_over(
    database: Database, paying: Payments, selling: Bookings
) -> None:
    found = await signed(selling)
    await make_lapse(database, found.booking)
    with pytest.raises(HoldLapsed) as refused:
        await paying.address_for(await selling.find(found.booking.reference), BACK, "en")
    assert str(refused.value) == "The hold has lapsed. The unit is free again."


@pytest.mark.parametrize(
    ("age_seconds", "fault"),
    [
        (0, None),
        (299, None),
        (-299, None),
        (302, SignatureProblem.TOO_OLD),
        (-302, SignatureProblem.TOO_FAR_AHEAD),
    ],
)
async def test_the_age_of_a_signature_goes_by_the_databases_clock(
    database: Database, paying: Payments, age_seconds: int, fault: SignatureProblem | None
) -> None:
    timestamp = int(await now(database)) - age_seconds
    signature = sign(SECRET, timestamp, b"{}")
    assert await paying.signature_fault(str(timestamp), signature, b"{}") is fault


async def test_another_secret_or_body_is_told_from_ours(database: Database, paying: Payments) -> None:
    timestamp = int(await now(database))
    other = sign("another secret", timestamp, b"{}")
    assert await paying.signature_fault(str(timestamp), other, b"{}") is SignatureProblem.DIGEST_DIFFERS
    own = sign(SECRET, timestamp, b"{}")
    assert await paying.signature_fault(str(timestamp), own, b"{ }") is SignatureProblem.DIGEST_DIFFERS
    assert await paying.signature_fault(str(timestamp + 1), own, b"{}") is SignatureProblem.DIGEST_DIFFERS
    assert await paying.signature_fault(None, own, b"{}") is SignatureProblem.TIMESTAMP_MISSING
    assert await paying.signature_fault(str(timestamp), None, b"{}") is SignatureProblem.SIGNATURE_MISSING


async def test_a_payment_reserves_the_unit_and_is_noted_as_who_did_it(
    database: Database, paying: Payments, selling: Bookings
) -> None:
    found = await signed(selling)
    for _ in range(3):
        written = await paying.confirm(paid(found), "request-3")
        assert (written.booking.status, written.booking.payment_id) == (BookingStatus.RESERVED, "pay_1")
    async with database.reading() as connection:
        entries = await connection.fetch(
            "select actor_kind, actor_id, request_id from audit_entry where action = 'confirm-deposit'"
        )
    assert [tuple(entry) for entry in entries] == [("payment", "pay_1", "request-3")]


async def test_what_is_not_taken_is_logged_with_all_that_it_takes_to_pay_it_back(
    paying: Payments, selling: Bookings, caplog: pytest.LogCaptureFixture
) -> None:
    found, unsigned = await signed(selling), await hold(selling, OMAR, "A-2")
    await paying.confirm(paid(found), "request-3")
    refused: list[tuple[Payment, type[Exception]]] = [
        (paid(found, "pay_2"), TransitionNotAllowed),
        (paid(found, "pay_3", DUE - 1), InvalidInput),
        (Payment("pay_4", "222-222-222", DUE), UnknownBooking),
        (Payment("pay_5", unsigned.booking.reference, Decimal(0)), NotSigned),
    ]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "holdfast.payments"):
        for payment, kind in refused:
            with pytest.raises(kind):
                await paying.confirm(payment, "request-4")
    fields = [record.__dict__["fields"] for record in caplog.records]
    assert [one["paymentId"] for one in fields] == ["pay_2", "pay_3", "pay_4", "pay_5"]
    assert [one["reference"] for one in fields] == [payment.reference for payment, _ in refused]
    assert all(one["why"] for one in fields)
    assert BUYER.name not in caplog.text + str(fields)


async def test_a_payment_that_is_due_back_is_logged_too(
    paying: Payments, selling: Bookings, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    found = await signed(selling)
    await make_lapse(database, found.booking)
    await hold(selling, OMAR)
    with caplog.at_level(logging.WARNING, "holdfast.payments"):
        written = await paying.confirm(paid(found), "request-3")
    assert written.booking.status is BookingStatus.REFUND_DUE
    assert [record.message for record in caplog.records] == [DUE_BACK]


async def test_staff_and_payment_system_may_both_confirm_and_somebody_is_to_look_at_it(
    paying: Payments, selling: Bookings, caplog: pytest.LogCaptureFixture
) -> None:
    found = await signed(selling)
    await selling.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.STAFF, STAFF)
    with caplog.at_level(logging.WARNING, "holdfast.payments"):
        for _ in range(2):
            written = await paying.confirm(paid(found), "request-3")
            assert (written.booking.payment_id, written.booking.status) == ("pay_1", BookingStatus.RESERVED)
    assert (await selling.find(found.booking.reference)).booking.payment_id == "pay_1"
    (record,) = caplog.records
    assert record.message == STAFF_HAD_CONFIRMED
    fields = record.__dict__["fields"]
    assert (fields["paymentId"], fields["reference"]) == ("pay_1", found.booking.reference)


async def test_a_payment_for_what_staff_confirmed_is_told_apart_also_when_it_is_due_back(
    paying: Payments, selling: Bookings, caplog: pytest.LogCaptureFixture
) -> None:
    found = await signed(selling)
    await selling.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.STAFF, STAFF)
    await selling.act_on_booking(found, BookingAction.CANCEL, Caller.STAFF, STAFF)
    with caplog.at_level(logging.WARNING, "holdfast.payments"):
        written = await paying.confirm(paid(found), "request-3")
    assert written.booking.status is BookingStatus.REFUND_DUE
    assert [record.message for record in caplog.records] == [STAFF_HAD_CONFIRMED, DUE_BACK]


async def test_a_payment_for_what_staff_confirmed_and_paid_back_is_to_be_paid_back_too(
    paying: Payments, selling: Bookings, caplog: pytest.LogCaptureFixture
) -> None:
    found = await signed(selling)
    await selling.act_on_booking(found, BookingAction.CONFIRM_DEPOSIT, Caller.STAFF, STAFF)
    await selling.act_on_booking(found, BookingAction.CANCEL, Caller.STAFF, STAFF)
    await selling.act_on_booking(found, BookingAction.MARK_REFUNDED, Caller.STAFF, STAFF)
    with caplog.at_level(logging.WARNING, "holdfast.payments"), pytest.raises(TransitionNotAllowed):
        await paying.confirm(paid(found), "request-3")
    assert [record.__dict__["fields"]["paymentId"] for record in caplog.records] == ["pay_1"]
    assert (await selling.find(found.booking.reference)).booking.payment_id is None


async def test_a_hold_that_ends_while_the_buyer_pays_is_told_to_the_page(
    paying: Payments, selling: Bookings
) -> None:
    found = await signed(selling)
    address = await paying.address_for(found, BACK, "en")
    assert address is not None
    told = dict(parse_qsl(urlsplit(address).query))["expiresAt"]
    assert found.booking.hold_expires_at is not None
    assert found.booking.hold_expires_at - found.now <= timedelta(minutes=5)
    assert told == found.booking.hold_expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
