"""The body that names a buyer."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, StringConstraints, TypeAdapter, with_config
from typing_extensions import TypedDict

from holdfast.domain.booking import Buyer
from holdfast.web.checking import names_of
from holdfast.web.fields import BUYER_NAME, EMAIL_ADDRESS, PHONE_NUMBER, STRICT

# What is pasted from a message brings along spaces, and where people write from right to left also the
# invisible marks that turn the direction.
_AT_THE_ENDS = r"[\s\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
_ENDS = re.compile(rf"\A{_AT_THE_ENDS}|{_AT_THE_ENDS}\Z")


def _trimmed(value: Any) -> Any:
    return _ENDS.sub("", value) if isinstance(value, str) else value


_TRIMMED = BeforeValidator(_trimmed)

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=BUYER_NAME), _TRIMMED]
Email = Annotated[str, StringConstraints(min_length=3, max_length=254, pattern=EMAIL_ADDRESS), _TRIMMED]
Phone = Annotated[str, StringConstraints(min_length=3, max_length=50, pattern=PHONE_NUMBER), _TRIMMED]


@with_config(STRICT)
class BuyerBody(TypedDict):
    buyer_name: Name
    buyer_email: Email
    buyer_phone: Phone


BUYER: TypeAdapter[Any] = TypeAdapter(BuyerBody)
BUYER_NAMES = names_of(BuyerBody)


def buyer_from(values: dict[str, Any]) -> Buyer:
    return Buyer(values["buyer_name"], values["buyer_email"], values["buyer_phone"])
