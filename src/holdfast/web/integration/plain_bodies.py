"""Units that leave no doubt, read in one step.

Nearly every unit that an ERP sends is a flat object of known fields within their bounds. One decoder
reads and checks it in a third of the time that ``strict_json`` and pydantic take. It never says no:
what it does not take goes that long way, which knows the whole grammar and names every fault. So it
may be narrower than the contract and never wider; a property test holds the two against each other.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Required

import msgspec
from msgspec import Meta
from typing_extensions import TypedDict

from holdfast.domain.status import Status
from holdfast.domain.unit import UnitFields
from holdfast.web.fields import Bounds, canonical
from holdfast.web.strict_json import LONGEST_NUMBER
from holdfast.web.unit_bounds import (
    AREA,
    DESCRIPTION_LENGTH,
    LONGEST_URL,
    MEDIA_AT_MOST,
    PERCENTAGE,
    PRICE,
    ROOMS,
    TYPE_LENGTH,
    YEAR,
)

_PLAIN_ADDRESS = r"^https?://[a-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9/._~%&=?+-]*)?\Z"

_Rooms = Annotated[int, Meta(ge=int(ROOMS.least), le=int(ROOMS.most))] | None
_Links = (
    Annotated[
        list[Annotated[str, Meta(max_length=LONGEST_URL, pattern=_PLAIN_ADDRESS)]],
        Meta(max_length=MEDIA_AT_MOST),
    ]
    | None
)


class _Unit(TypedDict, total=False):
    """Names as on the wire. What is no whole number is checked by ``_number``."""

    code: str
    type: Required[Annotated[str, Meta(min_length=1, max_length=TYPE_LENGTH)]]
    areaSqm: Required[Any]
    priceSar: Required[Any]
    vatIncluded: bool | None
    vatRate: Any
    depositPercent: Any
    bedrooms: _Rooms
    bathrooms: _Rooms
    deliveryYear: Annotated[int, Meta(ge=int(YEAR.least), le=int(YEAR.most))] | None
    description: Annotated[str, Meta(max_length=DESCRIPTION_LENGTH)] | None
    images: _Links
    files: _Links
    status: Literal["available", "unavailable"]


def _exact(text: str) -> Decimal:
    if len(text) > LONGEST_NUMBER:
        raise ValueError
    return Decimal(text)


_DECODE = msgspec.json.Decoder(_Unit, float_hook=_exact).decode
# The classes' own constructors take three times as long.
_new = tuple.__new__
_STATUS = {None: None, "available": Status.AVAILABLE, "unavailable": Status.UNAVAILABLE}


class PlainUnit(NamedTuple):
    code: str | None
    fields: UnitFields
    status: Status | None


class _Doubt(Exception):
    """Perhaps a fault, perhaps not: the long way knows."""


def read(text: str, names: int) -> PlainUnit | None:
    """The unit, if it leaves no doubt; ``names`` are ``names_in`` this text."""
    if names < 0:
        return None
    try:
        sent: dict[str, Any] = _DECODE(text)  # type: ignore[assignment]
        if len(sent) != names:
            return None
        find = sent.get
        fields = _new(
            UnitFields,
            (
                sent["type"],
                _number(sent["areaSqm"], AREA),
                _number(sent["priceSar"], PRICE),
                find("vatIncluded"),
                None if (rate := find("vatRate")) is None else _number(rate, PERCENTAGE),
                None if (deposit := find("depositPercent")) is None else _number(deposit, PERCENTAGE),
                find("bedrooms"),
                find("bathrooms"),
                find("deliveryYear"),
                find("description"),
                tuple(find("images") or ()),
                tuple(find("files") or ()),
            ),
        )
    except (ValueError, ArithmeticError, RecursionError, _Doubt):
        return None
    return _new(PlainUnit, (find("code"), fields, _STATUS[find("status")]))


def _number(value: Any, bounds: Bounds) -> Decimal:
    if type(value) is int:
        number = Decimal(value)
    elif type(value) is Decimal and value == round(value, bounds.decimals):
        number = canonical(value)
    else:
        raise _Doubt
    if not bounds.least <= number <= bounds.most or (bounds.least_is_out and number == bounds.least):
        raise _Doubt
    return number
