"""Examples of selling: one booking from hold to sale, decided by the code that decides the real ones."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.domain.access import token_from, token_hash
from holdfast.domain.audit import ActorKind
from holdfast.domain.booking import Buyer, Draft
from holdfast.domain.decision import Decision, Standing, after, change_made
from holdfast.domain.deposits import confirm_deposit, mark_refunded
from holdfast.domain.layout import Place, Placed, arrange
from holdfast.domain.opening import Opening, open_unit
from holdfast.domain.periods import Periods
from holdfast.domain.selling import (
    act,
    cancel,
    close_sale_of_booking,
    erase_buyer,
    extend,
    sign,
)
from holdfast.domain.status import Action, Caller, Status
from holdfast.operations.projects import Recorded
from holdfast.operations.write_path import Written
from holdfast.web.backoffice.documents import (
    entry_document,
    layout_document,
    staff_project_document,
    written_unit_document,
)
from holdfast.web.booking_wire import written_document
from holdfast.web.buyer_links import buyer_link
from holdfast.web.openapi.example_unit import NOW, PROJECT, REFERENCE, REQUEST_ID, UNIT, as_json
from holdfast.web.storefront.documents import offer_document
from holdfast.web.wire import camel_case, encode, optional_time_text, time_text

TOKEN = token_from(bytes(range(24)))

_NUMBER = 1
_BUYER = Buyer("Noura Al-Harbi", "noura@example.com", "+966 50 123 4567")
_PERIODS = Periods()
_DRAFT = Draft(_NUMBER, REFERENCE, token_hash(TOKEN))


def _written(decision: Decision) -> Written:
    return Written(decision, PROJECT, True, {})


def _story() -> dict[str, Decision]:
    """What becomes of the unit and its booking, minute by minute; the two last are other ends."""
    start = Standing(PROJECT, UNIT)
    minute = [NOW + timedelta(minutes=passed) for passed in range(5)]
    held = open_unit(start, UNIT.code, Opening(_DRAFT, Caller.BUYER, _PERIODS), minute[0])
    opened = after(start, held)
    signed = sign(opened, _NUMBER, _BUYER, minute[1])
    agreed = after(opened, signed)
    reserved = confirm_deposit(agreed, _NUMBER, Caller.PAYMENT_SYSTEM, _PERIODS, minute[2])
    paid = after(agreed, reserved)
    cancelled = cancel(paid, _NUMBER, Caller.STAFF, minute[3])
    sold = close_sale_of_booking(paid, _NUMBER, Caller.STAFF, minute[3])
    return {
        "held": held,
        "signed": signed,
        "reserved": reserved,
        "sold": sold,
        "erased": erase_buyer(after(paid, sold), _NUMBER, minute[4]),
        "extended": extend(opened, UNIT.code, Caller.STAFF, None, _PERIODS, minute[1]),
        "refund-due": cancelled,
        "refunded": mark_refunded(after(paid, cancelled), _NUMBER, minute[4]),
        "off-sale": act(start, UNIT.code, Action.TAKE_OFF_SALE, Caller.STAFF, minute[0]),
        "archived": act(start, UNIT.code, Action.ARCHIVE, Caller.STAFF, minute[0]),
    }


_STORY = _story()

_AFTER = {
    Action.OPEN: "held",
    Action.EXTEND: "extended",
    Action.CONFIRM_DEPOSIT: "reserved",
    Action.CLOSE_SALE: "sold",
    Action.TAKE_OFF_SALE: "off-sale",
    Action.ARCHIVE: "archived",
}


def booking(after_what: str) -> Any:
    return as_json(written_document(_written(_STORY[after_what])))


def booking_with_token() -> Any:
    url = buyer_link("https://units.example.com", PROJECT.slug, REFERENCE, TOKEN)
    return {**booking("signed"), "token": TOKEN, "url": url}


def unit_on_sale() -> Any:
    return as_json(offer_document(UNIT, PROJECT))


def hold() -> Any:
    held = _STORY["held"]
    return {
        "reference": REFERENCE,
        "token": TOKEN,
        "unit": as_json(offer_document(held.unit, PROJECT)),
        "holdExpiresAt": optional_time_text(held.unit.hold_expires_at),
    }


def staff_unit(action: Action) -> Any:
    """After the action; those that are not told of leave the unit free, or off sale."""
    if action in _AFTER:
        return as_json(written_unit_document(_written(_STORY[_AFTER[action]])))
    free = Status.UNAVAILABLE if action is Action.REVOKE_SALE else Status.AVAILABLE
    return as_json(written_unit_document(_written(Decision(UNIT._replace(status=free)))))


def buyer_details() -> dict[str, str]:
    return {"buyerName": _BUYER.name, "buyerEmail": _BUYER.email, "buyerPhone": _BUYER.phone}


def extension() -> dict[str, str]:
    return {"until": time_text(NOW + timedelta(days=1))}


def staff_project() -> Any:
    return as_json(staff_project_document(PROJECT._replace(hold_seconds=600.0)))


def new_project() -> dict[str, str]:
    return {"slug": "marina-heights", "name": "Marina Heights"}


def layout() -> Any:
    placed: list[Placed] = arrange([UNIT.code, "GARDEN"], {"GARDEN": Place("A", 0, 1)})
    return as_json(layout_document(PROJECT.slug, placed))


def history() -> Any:
    """The latest first: staff extended the hold that a buyer had."""
    start = Standing(PROJECT, UNIT)
    opened, extended = _STORY["held"], _STORY["extended"]
    key = (ActorKind.KEY, str(UUID(int=7)), "Front desk")
    return [
        _entry(2, key, after(start, opened), extended),
        _entry(1, (ActorKind.BUYER, REFERENCE, None), start, opened),
    ]


def _entry(number: int, actor: tuple[str, str, str | None], found: Standing, decided: Decision) -> Any:
    before, now = change_made(found, decided)
    kind, actor_id, name = actor
    at = decided.unit.updated_at
    recorded = Recorded(
        number,
        at,
        kind,
        actor_id,
        REQUEST_ID,
        decided.action,
        REFERENCE,
        _told(before or {}),
        _told(now),
        name,
    )
    return as_json(entry_document(recorded))


def _told(values: Any) -> str:
    """As the audit trail keeps it."""
    return encode({camel_case(name): _wire(value) for name, value in values.items()}).decode()


def _wire(value: Any) -> Any:
    return time_text(value) if hasattr(value, "tzinfo") else value
