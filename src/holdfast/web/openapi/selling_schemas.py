"""The schemas of what buyers read: units on sale, holds, bookings."""

from __future__ import annotations

from holdfast.domain.booking import BookingStatus
from holdfast.web.openapi.forms import (
    AMOUNT,
    BOOKING_REFERENCE,
    READ_CODE,
    SLUG,
    TEXT,
    TIME,
    Schema,
    either_or_null,
    page,
    record,
    reference,
)
from holdfast.web.openapi.selling_texts import FIELDS
from holdfast.web.storefront.documents import STATUSES_ON_SALE

_AMOUNTS: dict[str, Schema] = {
    name: AMOUNT | {"description": FIELDS[name]} for name in ("totalSar", "depositSar")
}
_UNIT_ON_SALE = (
    "code", "projectSlug", "projectName", "type", "areaSqm", "priceSar", "vatIncluded", "vatRate",
    "totalSar", "depositPercent", "depositSar", "status", "bedrooms", "bathrooms", "deliveryYear",
    "description", "images", "files", "holdExpiresAt",
)  # fmt: skip
_TERMS = ("priceSar", "vatIncluded", "vatRate", "totalSar", "depositPercent", "depositSar")
_TIMES = ("holdExpiresAt", "reservedUntil", "signedAt", "depositConfirmedAt", "closedAt", "buyerErasedAt")


def selling_schemas(unit: Schema) -> dict[str, Schema]:
    """``unit``: the schema of the integration API, which has most of the fields already."""
    fields = {**unit["properties"], **_AMOUNTS, "status": reference("StatusOnSale")}
    booking = _booking()
    return {
        "UnitOnSale": record(
            {name: fields[name] for name in _UNIT_ON_SALE},
            description="A unit as buyers see it. Values that are not set are null.",
        ),
        "StatusOnSale": TEXT | {"enum": [*STATUSES_ON_SALE]},
        "UnitOnSaleList": page("units", "UnitOnSale"),
        "Hold": _hold(),
        "Booking": record(booking, description="A buyer's way from hold to sale."),
        "BookingWithToken": record(
            {**booking, "token": _token(), "url": TEXT | {"description": FIELDS["url"]}}
        ),
        "BookingStatus": TEXT | {"enum": [*BookingStatus], "description": FIELDS["bookingStatus"]},
        "BookingList": page("bookings", "Booking"),
        "Terms": record({name: fields[name] for name in _TERMS}, description=FIELDS["terms"]),
        "Buyer": record({"name": TEXT, "email": TEXT, "phone": TEXT}),
    }


def own_reference() -> Schema:
    return BOOKING_REFERENCE | {"description": FIELDS["reference"]}


def optional_time(name: str) -> Schema:
    return either_or_null(TIME) | {"description": FIELDS[name]}


def _token() -> Schema:
    return TEXT | {"description": FIELDS["token"]}


def _hold() -> Schema:
    return record(
        {
            "reference": own_reference(),
            "token": TEXT | {"description": FIELDS["holdToken"]},
            "unit": reference("UnitOnSale"),
            "holdExpiresAt": TIME | {"description": "When the hold ends."},
        }
    )


def _booking() -> dict[str, Schema]:
    times = {name: optional_time(name) for name in _TIMES}
    return {
        "reference": own_reference(),
        "status": reference("BookingStatus"),
        "unitCode": READ_CODE | {"description": FIELDS["unitCode"]},
        "projectSlug": SLUG | {"description": FIELDS["projectSlug"]},
        "holdExpiresAt": times["holdExpiresAt"],
        "reservedUntil": times["reservedUntil"],
        "terms": reference("Terms"),
        "buyer": either_or_null(reference("Buyer")) | {"description": FIELDS["buyer"]},
        "signedAt": times["signedAt"],
        "depositConfirmedAt": times["depositConfirmedAt"],
        "closedAt": times["closedAt"],
        "buyerErasedAt": times["buyerErasedAt"],
    }
