"""What the audit trail says of a change: the difference, and nothing of the buyer's person."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from holdfast.domain import booking_actions
from holdfast.domain.audit import CLOCK, COMMAND, ActorKind, Change
from holdfast.domain.booking import CLAIMING, BookingStatus
from holdfast.domain.decision import UNCONDITIONAL, Decision, UnitSnapshot, describe_change, replace
from holdfast.domain.holds import HoldPeriods, HoldRequest, open_unit
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import Unit, UnitFields
from tests.domain.bookings import BUYER, DRAFT, NUMBER, after_the_end, claimed
from tests.domain.units import FIELDS, MINUTE, NOW, fields, snapshot, unit, units


def put(found: Unit | None, wanted: UnitFields) -> Change:
    before = snapshot(found)
    return describe_change(before, replace(before, "A-101", wanted, None, UNCONDITIONAL, NOW))


def test_the_clock_and_the_console_are_authors_without_an_id() -> None:
    assert CLOCK == (ActorKind.CLOCK, None, None)
    assert COMMAND == (ActorKind.COMMAND, None, None)


def test_of_a_new_unit_all_is_told_that_was_given() -> None:
    wanted = UnitFields("apartment", Decimal("120.5"), Decimal(1), vat_included=False, bedrooms=0)
    told = {"type": "apartment", "area_sqm": Decimal("120.5"), "price_sar": Decimal(1)}
    assert put(None, wanted) == (
        None,
        {**told, "vat_included": False, "bedrooms": 0, "status": Status.AVAILABLE},
    )


def test_of_a_changed_unit_only_the_difference_is_told() -> None:
    change = put(unit(), FIELDS._replace(price_sar=Decimal(5), vat_rate=None))
    assert change == (
        {"price_sar": FIELDS.price_sar, "vat_rate": FIELDS.vat_rate},
        {"price_sar": Decimal(5), "vat_rate": None},
    )


@given(units().filter(lambda one: one.status in (Status.AVAILABLE, Status.UNAVAILABLE)), fields)
def test_what_was_and_the_difference_make_what_is(found: Unit, wanted: UnitFields) -> None:
    before, now_is = put(found, wanted)
    assert before is not None
    assert set(before) == set(now_is)
    assert all(before[name] != now_is[name] for name in before)
    assert found.fields._replace(**now_is) == wanted
    assert wanted._replace(**before) == found.fields


def test_an_opened_unit_tells_its_new_status_its_end_and_the_new_booking() -> None:
    found = snapshot(unit())
    opening = HoldRequest(DRAFT, Caller.BUYER, HoldPeriods(hold_seconds=60))
    change = describe_change(found, open_unit(found, "A-101", opening, NOW))
    assert change == (
        {"status": Status.AVAILABLE, "hold_expires_at": None},
        {"status": Status.HELD, "hold_expires_at": NOW + MINUTE, "booking_status": BookingStatus.OPEN},
    )


def test_a_signature_tells_that_it_was_made_and_not_by_whom() -> None:
    found = claimed()
    change = describe_change(found, booking_actions.sign(found, NUMBER, BUYER, NOW))
    assert change == ({"booking_status": BookingStatus.OPEN}, {"booking_status": BookingStatus.SIGNED})


def test_an_extension_tells_the_two_ends() -> None:
    found = claimed()
    change = describe_change(
        found, booking_actions.extend(found, "A-101", Caller.STAFF, None, HoldPeriods(60), NOW)
    )
    assert change == ({"hold_expires_at": NOW + MINUTE}, {"hold_expires_at": NOW + 2 * MINUTE})


def test_a_new_link_tells_nothing_of_the_token() -> None:
    found = claimed()
    assert describe_change(found, booking_actions.reissue_link(found, NUMBER, b"new")) == ({}, {})


def test_archiving_tells_of_the_archive() -> None:
    found = snapshot(unit(Status.UNAVAILABLE))
    change = describe_change(
        found, booking_actions.change_status(found, "A-101", Action.ARCHIVE, Caller.STAFF, NOW)
    )
    assert change == ({"archived": False}, {"archived": True})


PERIODS = HoldPeriods()
WAYS: list[Any] = [
    lambda found: booking_actions.sign(found, NUMBER, BUYER, NOW),
    lambda found: booking_actions.cancel(found, NUMBER, Caller.STAFF, NOW),
    lambda found: booking_actions.extend(found, "A-101", Caller.STAFF, None, PERIODS, NOW),
    lambda found: booking_actions.confirm_deposit(found, NUMBER, Caller.STAFF, PERIODS, NOW),
    lambda found: booking_actions.close_sale_of_booking(found, NUMBER, Caller.STAFF, NOW),
    lambda found: booking_actions.close_sale(found, "A-101", DRAFT, BUYER, Caller.STAFF, NOW),
    lambda found: booking_actions.mark_refunded(found, NUMBER, NOW),
    lambda found: booking_actions.reissue_link(found, NUMBER, b"new"),
    lambda found: booking_actions.change_status(found, "A-101", Action.ARCHIVE, Caller.STAFF, NOW),
    lambda found: booking_actions.change_status(found, "A-101", Action.REVOKE_SALE, Caller.ADMIN, NOW),
]
TOLD = {"status", "archived", "hold_expires_at", "reserved_until", "booking_status"}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("status", BookingStatus)
def test_no_step_of_a_booking_tells_of_its_buyer(way: Any, status: BookingStatus) -> None:
    found: UnitSnapshot = claimed(status) if status in CLAIMING else after_the_end(status)
    try:
        decision: Decision = way(found)
    except Exception:  # noqa: BLE001 - what is refused tells nothing
        return
    before, now_is = describe_change(found, decision)
    assert before is not None
    assert TOLD.issuperset({*before, *now_is})
    personal = {*BUYER, found.booking_numbered(NUMBER), b"new", DRAFT.token_hash}
    assert personal.isdisjoint([*before.values(), *now_is.values()])
