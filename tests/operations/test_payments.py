"""Deposits: the payment page of a buyer, the reports that count, and what is logged."""

import logging
from decimal import Decimal
from urllib.parse import parse_qsl, urlsplit

import pytest

from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import BookingAction
from holdfast.domain.errors import HoldLapsed, InvalidInput, NotSigned, TransitionNotAllowed, UnknownBooking
from holdfast.domain.payment import Payment, PaymentRequest
from holdfast.domain.signature import SignatureProblem, sign
from holdfast.domain.transitions import Caller
from holdfast.operations.bookings import Bookings, FoundBooking
from holdfast.operations.payments import HostedPaymentPage, PaymentPage, Payments
from holdfast.operations.units import PatchUnit
from holdfast.storage.database import Database, current_time
from tests.operations.scene import OMAR, STAFF, hold
from tests.support.inventory import SLUG
from tests.support.sales import BUYER, make_lapse
from tests.support.sql import rows

SECRET = "a secret of payments"
PAGE = "https://pay.example.com/deposits"
CALLBACK = "https://units.example.com/v1/payments/callback"
BACK = "https://units.example.com/p/palm-court/bookings/1"
DUE = Decimal("100000.00")
DUE_BACK = "a payment came too late and is due back"
STAFF_HAD_CONFIRMED = "a payment was reported for a deposit that staff had confirmed"


@pytest.fixture(autouse=True)
def warnings(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "holdfast.payments")


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


async def test_a_buyer_who_signed_is_sent_to_the_payment_page(paying: Payments, selling: Bookings) -> None:
    found = await signed(selling)
    address = await paying.address_for(found, BACK, "ar")
    assert address is not None
    assert address.startswith(f"{PAGE}?reference={found.booking.reference}&amountSar=100000.00&")
    asked = dict(parse_qsl(urlsplit(address).query))
    assert (asked["returnUrl"], asked["callbackUrl"], asked["language"]) == (BACK, CALLBACK, "ar")
    assert asked["timestamp"] == str(int(found.now.timestamp()))
    expires_at = found.booking.hold_expires_at
    assert expires_at is not None
    assert asked["expiresAt"] == expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_any_provider_may_be_asked(database: Database, selling: Bookings, paying: Payments) -> None:
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
    reference = found.booking.reference
    assert asked == [PaymentRequest(reference, DUE, BACK, CALLBACK, "en", expires_at, found.now)]
    # Without a provider or a deposit there is nowhere to pay.
    closed = Payments(database, selling._units, selling, PaymentPage())
    assert (closed.is_open, await closed.address_for(found, BACK, "en")) == (False, None)
    assert await paying.address_for(await signed(selling, "A-2"), BACK, "en") is None


async def test_only_signed_holds_are_paid(database: Database, paying: Payments, selling: Bookings) -> None:
    held = await hold(selling)
    with pytest.raises(NotSigned):
        await paying.address_for(await selling.find(held.booking.reference), BACK, "en")
    over = await signed(selling, "A-2")
    await make_lapse(database, over.booking)
    with pytest.raises(HoldLapsed):
        await paying.address_for(await selling.find(over.booking.reference), BACK, "en")


async def test_a_callback_is_ours_and_recent(database: Database, paying: Payments) -> None:
    now = int((await database.read(current_time)).timestamp())
    for ahead, fault in ((0, None), (-302, SignatureProblem.TOO_OLD), (400, SignatureProblem.TOO_FAR_AHEAD)):
        moment = now + ahead
        assert await paying.signature_fault(str(moment), sign(SECRET, moment, b"{}"), b"{}") is fault
    own, differs = sign(SECRET, now, b"{}"), SignatureProblem.DIGEST_DIFFERS
    # They are refused before the database is asked.
    offline = Payments(Database("postgresql://nowhere/db"), paying._units, paying._bookings, paying._page)
    for timestamp, signature, body, fault in (
        (str(now), sign("another secret", now, b"{}"), b"{}", differs),
        # Who does not know the secret is told nothing of the clock.
        (str(now - 400), sign("another secret", now - 400, b"{}"), b"{}", differs),
        (str(now), own, b"{ }", differs),
        (str(now + 1), own, b"{}", differs),
        (None, own, b"{}", SignatureProblem.TIMESTAMP_MISSING),
        (str(now), None, b"{}", SignatureProblem.SIGNATURE_MISSING),
    ):
        assert await paying.signature_fault(timestamp, signature, body) is fault
        assert await offline.signature_fault(timestamp, signature, body) is fault


async def test_a_payment_reserves_the_unit_and_is_noted_as_who_did_it(
    database: Database, paying: Payments, selling: Bookings, caplog: pytest.LogCaptureFixture
) -> None:
    found = await signed(selling)
    for _ in range(3):
        written = await paying.confirm(paid(found), "request-3")
        assert (written.booking.status, written.booking.payment_id) == (BookingStatus.RESERVED, "pay_1")
    statement = "select actor_kind, actor_id, request_id from audit_entry where action = 'confirm-deposit'"
    assert await rows(database, statement) == [("payment", "pay_1", "request-3")]
    assert caplog.messages == []
    # One that is too late is due back, and logged.
    late = await signed(selling, "A-2")
    await make_lapse(database, late.booking)
    await hold(selling, OMAR, "A-2")
    written = await paying.confirm(paid(late, "pay_2", late.booking.terms.deposit_sar), "request-3")
    assert (written.booking.status, caplog.messages) == (BookingStatus.REFUND_DUE, [DUE_BACK])


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
    for payment, kind in refused:
        with pytest.raises(kind):
            await paying.confirm(payment, "request-4")
    fields = [record.__dict__["fields"] for record in caplog.records]
    assert [one["paymentId"] for one in fields] == ["pay_2", "pay_3", "pay_4", "pay_5"]
    assert [one["reference"] for one in fields] == [payment.reference for payment, _ in refused]
    assert all(one["why"] for one in fields)
    assert BUYER.name not in caplog.text + str(fields)


async def test_a_payment_for_what_staff_confirmed_is_to_be_looked_at_or_paid_back(
    paying: Payments, selling: Bookings, caplog: pytest.LogCaptureFixture
) -> None:
    async def by_staff(action: BookingAction) -> None:
        await selling.act_on_booking(found, action, Caller.STAFF, STAFF)

    found = await signed(selling)
    await by_staff(BookingAction.CONFIRM_DEPOSIT)
    for _ in range(2):
        written = await paying.confirm(paid(found), "request-3")
        assert (written.booking.payment_id, written.booking.status) == ("pay_1", BookingStatus.RESERVED)
    assert (await selling.find(found.booking.reference)).booking.payment_id == "pay_1"
    (record,) = caplog.records
    assert record.message == STAFF_HAD_CONFIRMED
    fields = record.__dict__["fields"]
    assert (fields["paymentId"], fields["reference"]) == ("pay_1", found.booking.reference)
    caplog.clear()
    found = await signed(selling, "A-2")
    nothing = found.booking.terms.deposit_sar
    await by_staff(BookingAction.CONFIRM_DEPOSIT)
    await by_staff(BookingAction.CANCEL)
    written = await paying.confirm(paid(found, "pay_2", nothing), "request-3")
    assert written.booking.status is BookingStatus.REFUND_DUE
    assert caplog.messages == [STAFF_HAD_CONFIRMED, DUE_BACK]
