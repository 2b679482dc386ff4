"""Decisions: what they leave for the next command, what the clock decides, and their audit entries."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from holdfast.domain import booking_actions
from holdfast.domain import decision as decisions
from holdfast.domain.audit import Change
from holdfast.domain.booking import CLAIMING, BookingStatus, Slots
from holdfast.domain.decision import Decision, UnitSnapshot, apply, describe_change, expire
from holdfast.domain.errors import DomainError
from holdfast.domain.holds import HoldRequest, open_unit
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action, Caller
from holdfast.domain.unit import Unit, UnitFields, as_seen
from tests.domain.bookings import ACTIONS, BUYER, DRAFT, NUMBER, PERIODS, booking, claimed, in_status
from tests.domain.units import FIELDS, MINUTE, NOW, PROJECT, fields, snapshot, unit, units

LATER = unit(fields=FIELDS._replace(bedrooms=3), version=8)


@pytest.mark.parametrize("status", BookingStatus)
def test_a_booking_that_claims_is_the_claim_and_an_ended_one_has_its_number(status: BookingStatus) -> None:
    assert apply(claimed(), Decision(LATER)) == claimed()._replace(unit=LATER)
    decided = booking(status)
    for before in (claimed(), snapshot(unit())):
        after = apply(before, Decision(LATER, booking=decided))
        assert after.unit is LATER
        assert after.booking is (decided if status in CLAIMING else None)
        assert after.booking_numbered(NUMBER) is decided
    ended_again = booking(BookingStatus.REFUND_DUE)
    assert apply(after, Decision(LATER, booking=ended_again)).booking_numbered(NUMBER) is ended_again


def test_a_booking_that_ended_long_ago_leaves_the_claim_and_what_others_hold() -> None:
    """Marked refunded, say, while somebody else holds the unit."""
    found = claimed()._replace(live_holds={PROJECT.id: []}, others={1: booking(number=1)})
    refunded = booking(BookingStatus.REFUNDED, number=NUMBER + 1)
    after = apply(found, Decision(LATER, booking=refunded))
    assert after.booking is found.booking
    assert after.booking_numbered(NUMBER + 1) is refunded
    assert (set(after.others), after.live_holds) == ({1, NUMBER + 1}, found.live_holds)


@pytest.mark.parametrize("status", [BookingStatus.OPEN, BookingStatus.SIGNED, BookingStatus.RESERVED])
def test_the_clock_writes_what_readers_saw_already(status: BookingStatus) -> None:
    found = claimed(status, slots=Slots(1, 2))
    assert found.unit is not None
    assert found.booking is not None
    ends_at = NOW + MINUTE
    decision = expire(found)
    assert decision.unit == as_seen(found.unit, ends_at)
    held = found.unit.status is Status.HELD
    assert decision.action == (Action.LAPSE_HOLD if held else Action.LAPSE_RESERVATION)
    (event,) = decision.events
    assert (event.type, event.previous_status) == ("unit.released", found.unit.status)
    assert event.created_at == ends_at
    over = BookingStatus.LAPSED if held else BookingStatus.REFUND_DUE
    assert decision.booking == found.booking._replace(status=over, ended_at=ends_at, slots=Slots())


# Audit entries: the difference, and nothing of the buyer's person


def put(found: Unit | None, wanted: UnitFields) -> Change:
    before = snapshot(found)
    decided = decisions.replace(before, "A-101", wanted, None, decisions.UNCONDITIONAL, NOW)
    return describe_change(before, decided)


def test_the_entry_of_a_new_unit_has_all_that_was_given() -> None:
    given_fields = {"type": "apartment", "area_sqm": Decimal("120.5"), "price_sar": Decimal(1)}
    others = {"vat_included": False, "bedrooms": 0}
    before, after = put(None, UnitFields(**given_fields, **others))  # type: ignore[arg-type]
    assert before is None
    assert after == {**given_fields, **others, "status": Status.AVAILABLE}


@given(units().filter(lambda one: one.status in (Status.AVAILABLE, Status.UNAVAILABLE)), fields)
def test_the_entry_of_a_changed_unit_is_the_difference(found: Unit, wanted: UnitFields) -> None:
    before, after = put(found, wanted)
    assert before is not None
    assert set(before) == set(after)
    assert all(before[name] != after[name] for name in before)
    assert found.fields._replace(**after) == wanted
    assert wanted._replace(**before) == found.fields


ENDS = "hold_expires_at"
OPENING = HoldRequest(DRAFT, Caller.BUYER, PERIODS)


@pytest.mark.parametrize(
    ("found", "do", "before", "after"),
    [
        (
            snapshot(unit()),
            lambda found: open_unit(found, "A-101", OPENING, NOW),
            {"status": Status.AVAILABLE, ENDS: None},
            {"status": Status.HELD, ENDS: NOW + 2 * MINUTE, "booking_status": "open"},
        ),
        (claimed(), ACTIONS["sign"], {"booking_status": "open"}, {"booking_status": "signed"}),
        (claimed(), ACTIONS["extend"], {ENDS: NOW + MINUTE}, {ENDS: NOW + 3 * MINUTE}),
        (claimed(), ACTIONS["reissue"], {}, {}),
        (
            snapshot(unit(Status.UNAVAILABLE)),
            lambda found: booking_actions.change_status(found, "A-101", Action.ARCHIVE, Caller.STAFF, NOW),
            {"archived": False},
            {"archived": True},
        ),
    ],
    ids=["open", "sign", "extend", "new link", "archive"],
)
def test_the_entry_of_an_action_is_the_difference(
    found: UnitSnapshot, do: Any, before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert describe_change(found, do(found)) == (before, after)


STATE = {"status", "archived", "hold_expires_at", "reserved_until", "booking_status"}


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.parametrize("status", BookingStatus)
def test_no_entry_of_a_booking_has_its_buyers_data(name: str, status: BookingStatus) -> None:
    found = in_status(status)
    try:
        before, after = describe_change(found, ACTIONS[name](found))
    except DomainError:
        return
    assert before is not None
    assert STATE.issuperset({*before, *after})
    assert {*BUYER, b"new"}.isdisjoint([*before.values(), *after.values()])
