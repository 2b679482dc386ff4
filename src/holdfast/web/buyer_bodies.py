"""The body that names a buyer."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter, with_config
from typing_extensions import TypedDict

from holdfast.domain.booking import Buyer
from holdfast.web.checking import names_of
from holdfast.web.fields import BUYER_NAME, EMAIL_ADDRESS, PHONE_NUMBER, STRICT

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=BUYER_NAME)]
Email = Annotated[str, StringConstraints(min_length=3, max_length=254, pattern=EMAIL_ADDRESS)]
Phone = Annotated[str, StringConstraints(min_length=3, max_length=50, pattern=PHONE_NUMBER)]


@with_config(STRICT)
class BuyerBody(TypedDict):
    buyer_name: Name
    buyer_email: Email
    buyer_phone: Phone


BUYER: TypeAdapter[Any] = TypeAdapter(BuyerBody)
BUYER_NAMES = names_of(BuyerBody)


def buyer_from(values: dict[str, Any]) -> Buyer:
    return Buyer(values["buyer_name"], values["buyer_email"], values["buyer_phone"])
