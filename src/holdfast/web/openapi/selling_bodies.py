"""The schemas of the bodies that buyers and staff send, as pydantic tells them and in our words."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from holdfast.web.backoffice.bodies import EXTENSION, LAYOUT, NEW_PROJECT, PLACE, PROJECT
from holdfast.web.buyer_bodies import BUYER
from holdfast.web.openapi.forms import (
    BUYER_NAME_PATTERN,
    CODE_PATTERN,
    EMAIL_PATTERN,
    PHONE_PATTERN,
    Schema,
    body_schema,
    reference,
)
from holdfast.web.openapi.selling_texts import FIELDS

# Where pydantic's own patterns are such as not every validator knows.
_PATTERNS = {
    "buyerName": BUYER_NAME_PATTERN,
    "buyerEmail": EMAIL_PATTERN,
    "buyerPhone": PHONE_PATTERN,
    "name": CODE_PATTERN,
    "building": CODE_PATTERN,
}


def selling_bodies() -> dict[str, Schema]:
    layout = _body(LAYOUT)
    layout["properties"]["units"]["items"] = reference("PlaceReplacement")
    return {
        "BuyerDetails": _body(BUYER),
        "Extension": _body(EXTENSION),
        "NewProject": _body(NEW_PROJECT),
        "ProjectChange": _body(PROJECT),
        "LayoutReplacement": layout,
        "PlaceReplacement": _body(PLACE),
    }


def _body(adapter: TypeAdapter[Any]) -> Schema:
    return body_schema(adapter, FIELDS, _PATTERNS)
