"""The body that names a buyer."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StringConstraints

from holdfast.domain.booking import Buyer
from holdfast.web.api.bodies import BodyModel
from holdfast.web.fields import BUYER_NAME, EMAIL_ADDRESS, PHONE_NUMBER

# Pasted text comes with spaces and, where people write from right to left, with invisible marks of direction.
_AT_THE_ENDS = r"[\s\u200e\u200f\u202a-\u202e\u2066-\u2069]+"
_ENDS = re.compile(rf"\A{_AT_THE_ENDS}|{_AT_THE_ENDS}\Z")


def _trimmed(value: Any) -> Any:
    return _ENDS.sub("", value) if isinstance(value, str) else value


_TRIMMED = BeforeValidator(_trimmed)

Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=BUYER_NAME), _TRIMMED]
Email = Annotated[str, StringConstraints(min_length=3, max_length=254, pattern=EMAIL_ADDRESS), _TRIMMED]
Phone = Annotated[str, StringConstraints(min_length=3, max_length=50, pattern=PHONE_NUMBER), _TRIMMED]


class BuyerDetails(BodyModel):
    """Spaces at the ends of all three are dropped."""

    example: ClassVar[Any] = {
        "buyerName": "Sara Al-Harbi",
        "buyerEmail": "sara@example.com",
        "buyerPhone": "+966 50 123 4567",
    }

    buyer_name: Name = Field(description="Printable text.")
    buyer_email: Email = Field(description="An e-mail address.")
    buyer_phone: Phone = Field(description="Digits of any script, with a + before them if you like.")

    def buyer(self) -> Buyer:
        return Buyer(self.buyer_name, self.buyer_email, self.buyer_phone)
