"""What a buyer fills in when they sign."""

from __future__ import annotations

from holdfast.domain.booking import Buyer
from holdfast.domain.errors import Fault, InvalidInput
from holdfast.web.api.bodies import validated
from holdfast.web.api.buyer_body import BuyerDetails
from holdfast.web.html.translation import translate
from holdfast.web.storefront.pages.visits import Visit

CONSENT = "consent"
_FIELDS = ("buyerName", "buyerEmail", "buyerPhone")


def signing_buyer(visit: Visit) -> Buyer:
    """All that is wrong is told at once; what was left empty is missing, not too short."""
    sent = {name: visit.form.raw(name) for name in _FIELDS if visit.form.text(name)}
    faults = [] if visit.form.text(CONSENT) else [Fault(f"/{CONSENT}", "This field is required.")]
    details = validated(BuyerDetails, sent)
    if isinstance(details, list) or faults:
        raise InvalidInput([*faults, *(details if isinstance(details, list) else [])])
    return details.buyer()


def faults_by_field(visit: Visit, refusal: InvalidInput) -> dict[str, str]:
    """In the order of the form, each in the buyer's own terms."""
    told = {fault.pointer.strip("/"): fault for fault in refusal.faults}
    return {
        name: _missing(visit, name)
        if not visit.form.text(name)
        else translate(told[name].message, visit.language)
        for name in (*_FIELDS, CONSENT)
        if name in told
    }


def _missing(visit: Visit, name: str) -> str:
    words = {
        "buyerName": visit._("Enter your full name."),
        "buyerEmail": visit._("Enter your e-mail address."),
        "buyerPhone": visit._("Enter your phone number."),
        CONSENT: visit._("Tick the box: without your consent there is no agreement."),
    }
    return words[name]
