"""What staff fill in when they sell: a buyer, an end."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.domain.booking import Buyer
from holdfast.domain.errors import InvalidInput
from holdfast.web.api.bodies import valid
from holdfast.web.api.buyer_body import BuyerDetails
from holdfast.web.backoffice.visits import Visit
from holdfast.web.html.translation import translate

BUYER_FIELDS = ("buyerName", "buyerEmail", "buyerPhone")
_NO_TIME = "This must be a date and a time."


def named_buyer(visit: Visit) -> Buyer:
    """What was left empty is missing, not too short."""
    sent = {name: visit.form.raw(name) for name in BUYER_FIELDS if visit.form.text(name)}
    return valid(BuyerDetails, sent).buyer()


def chosen_end(visit: Visit) -> datetime | None:
    """None: one period later, as was left open. A browser knows no seconds."""
    text = visit.form.text("until")
    if not text:
        return None
    try:
        return visit.language.at(text).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        raise InvalidInput.at("/until", _NO_TIME) from None


def faults_by_field(visit: Visit, refusal: InvalidInput) -> dict[str, str]:
    return {fault.pointer.strip("/"): translate(fault.message, visit.language) for fault in refusal.faults}
