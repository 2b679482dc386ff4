"""How bookings are written in JSON, for buyers and staff alike."""

from __future__ import annotations

from typing import Any

from holdfast.domain.booking import Booking, Buyer, Terms
from holdfast.operations.selling import Found
from holdfast.operations.write_path import Written
from holdfast.web.wire import optional_time_text


def booking_document(booking: Booking, unit_code: str, project_slug: str) -> dict[str, Any]:
    return {
        "reference": booking.reference,
        "status": booking.status,
        "unitCode": unit_code,
        "projectSlug": project_slug,
        "holdExpiresAt": optional_time_text(booking.hold_expires_at),
        "reservedUntil": optional_time_text(booking.reserved_until),
        "terms": terms_document(booking.terms),
        "buyer": _buyer_document(booking.buyer),
        "signedAt": optional_time_text(booking.signed_at),
        "depositConfirmedAt": optional_time_text(booking.deposit_confirmed_at),
        "closedAt": optional_time_text(booking.closed_at),
        "buyerErasedAt": optional_time_text(booking.buyer_erased_at),
    }


def found_document(found: Found) -> dict[str, Any]:
    return booking_document(found.booking, found.unit_code, found.project_slug)


def written_document(written: Written) -> dict[str, Any]:
    return booking_document(written.booking, written.unit.code, written.project.slug)


def terms_document(terms: Terms) -> dict[str, Any]:
    return {
        "priceSar": terms.price_sar,
        "vatIncluded": terms.vat_included,
        "vatRate": terms.vat_rate,
        "totalSar": terms.total_sar,
        "depositPercent": terms.deposit_percent,
        "depositSar": terms.deposit_sar,
    }


def _buyer_document(buyer: Buyer | None) -> dict[str, Any] | None:
    return None if buyer is None else {"name": buyer.name, "email": buyer.email, "phone": buyer.phone}
