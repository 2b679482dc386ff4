"""Bookings in every condition, as subjects of papers."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from holdfast.domain.booking import (
    WORDING,
    Agreement,
    Booking,
    BookingStatus,
    Buyer,
    Draft,
    Terms,
    new_booking,
)
from holdfast.domain.seller import Seller
from holdfast.web.documents.content import Document, Kind, Subject, build_document
from holdfast.web.pages.i18n import language_of
from tests.domain.units import unit

REFERENCE = "Q39-4F6-4K6"
ADDRESS = f"https://sales.example.com/p/narjis-heights/bookings/{REFERENCE}"
NOW = datetime(2026, 11, 16, 7, 30, 12, tzinfo=UTC)
LATER = NOW + timedelta(days=2)
NORA = Buyer("Nora Al-Harbi", "nora@example.com", "+966 50 123 4567")
NOURA = Buyer("نورة بنت عبدالله الحربي", "noura@example.com", "+966 50 123 4567")
TERMS = Terms(Decimal(1299000), False, Decimal(5), Decimal(10))
AGREEMENT = Agreement(
    "Narjis Heights | مرتفعات النرجس", "Apartment | شقة", Decimal("142.5"), 3, 2, 2028, "en", WORDING
)  # fmt: skip
SELLER = Seller(
    legal_name="Palm Court Company | شركة النخيل",
    commercial_registration="1010123456",
    vat_number="310123456700003",
    bank_name="Palm Bank",
    iban="SA0380000000608010167519",
    terms="No {pets}.\n\nلا أسود.",
)
OUTCOMES: dict[BookingStatus, dict[str, Any]] = {
    BookingStatus.LAPSED: {"ended_at": LATER, "deposit_confirmed_at": None, "payment_id": None},
    BookingStatus.CANCELLED: {"ended_at": LATER, "deposit_confirmed_at": None, "payment_id": None},
    BookingStatus.SOLD: {"closed_at": NOW},
    BookingStatus.REFUND_DUE: {"ended_at": LATER},
    BookingStatus.REFUNDED: {"ended_at": LATER, "refunded_at": LATER + timedelta(days=1)},
}


def a_booking(status: BookingStatus = BookingStatus.RESERVED, **others: Any) -> Booking:
    """Signed, and its deposit confirmed where its status does not say otherwise."""
    draft = Draft(5, REFERENCE, b"")
    end = NOW + timedelta(minutes=5)
    booking = new_booking(draft, unit(), status, NOW, buyer=NORA, hold_expires_at=end)
    made = {
        "terms": TERMS,
        "signed_at": NOW + timedelta(minutes=2),
        "deposit_confirmed_at": NOW + timedelta(minutes=4),
        "reserved_until": NOW + timedelta(days=14),
        "payment_id": "pay_7Hk29",
    }
    return booking._replace(**{**made, **OUTCOMES.get(status, {}), **others})


def a_document(
    kind: Kind = Kind.AGREEMENT,
    code: str = "en",
    booking: Booking | None = None,
    agreement: Agreement = AGREEMENT,
    *,
    is_signed_text: bool = True,
) -> Document:
    subject = Subject(booking or a_booking(), "A-1203", agreement, is_signed_text)
    return build_document(kind, subject, language_of(code, "latn", "Asia/Riyadh"))
