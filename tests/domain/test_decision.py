"""What a decision leaves for the next command, and what the clock decides."""

import pytest

from holdfast.domain.booking import CLAIMING, NO_SLOTS, BookingStatus, Slots
from holdfast.domain.decision import Decision, UnitSnapshot, apply, expire
from holdfast.domain.status import Status
from holdfast.domain.transitions import Action
from holdfast.domain.unit import as_seen, revision
from tests.domain.bookings import NUMBER, OTHER_NUMBER, UNIT_STATUS, booking, claimed
from tests.domain.units import FIELDS, MINUTE, NOW, PROJECT, snapshot, unit

LATER = unit(fields=FIELDS._replace(bedrooms=3), version=8)


def test_a_change_of_the_unit_alone_leaves_the_booking() -> None:
    found = claimed()
    assert apply(found, Decision(LATER)) == found._replace(unit=LATER)


@pytest.mark.parametrize("status", BookingStatus)
def test_a_booking_that_claims_is_found_as_the_claim_and_an_ended_one_by_number(
    status: BookingStatus,
) -> None:
    decided = booking(status)
    next_one = apply(claimed(), Decision(LATER, booking=decided))
    assert next_one.unit is LATER
    assert next_one.booking is (decided if status in CLAIMING else None)
    assert next_one.booking_numbered(NUMBER) is decided


def test_the_first_booking_of_a_unit_becomes_its_claim() -> None:
    decided = booking()
    assert apply(snapshot(unit()), Decision(LATER, booking=decided)).booking is decided


def test_a_booking_that_ended_long_ago_does_not_take_the_claim_away() -> None:
    """Marked refunded, say, while somebody else holds the unit."""
    found = claimed()
    refunded = booking(BookingStatus.REFUNDED, number=OTHER_NUMBER)
    next_one = apply(found, Decision(LATER, booking=refunded))
    assert next_one.booking is found.booking
    assert next_one.booking_numbered(OTHER_NUMBER) is refunded


def test_the_second_end_of_a_booking_is_built_on_the_first() -> None:
    found = claimed()
    cancelled = booking(BookingStatus.CANCELLED)
    again = booking(BookingStatus.REFUND_DUE)
    steps = apply(apply(found, Decision(LATER, booking=cancelled)), Decision(LATER, booking=again))
    assert steps.booking_numbered(NUMBER) is again


def test_what_others_hold_is_kept() -> None:
    found = UnitSnapshot(PROJECT, unit(), {PROJECT.id: []}, others={1: booking(number=1)})
    next_one = apply(found, Decision(LATER, booking=booking()))
    assert (set(next_one.others), next_one.live_holds) == ({1, NUMBER}, found.live_holds)


@pytest.mark.parametrize("status", [BookingStatus.OPEN, BookingStatus.SIGNED, BookingStatus.RESERVED])
def test_the_clock_writes_what_readers_saw_already(status: BookingStatus) -> None:
    found = claimed(status, slots=Slots(1, 2))
    assert found.unit is not None
    ends_at = NOW + MINUTE
    decision = expire(found)
    assert decision.unit == as_seen(found.unit, ends_at)
    held = UNIT_STATUS[status] is Status.HELD
    assert decision.action == (Action.LAPSE_HOLD if held else Action.LAPSE_RESERVATION)
    (event,) = decision.events
    assert (event.type, event.previous_status, event.created_at) == (
        "unit.released",
        found.unit.status,
        ends_at,
    )
    ended = decision.booking
    assert ended is not None
    assert ended.status is (BookingStatus.LAPSED if held else BookingStatus.REFUND_DUE)
    assert (ended.ended_at, ended.slots) == (ends_at, NO_SLOTS)


def test_a_unit_without_a_booking_is_released_all_the_same() -> None:
    decision = expire(snapshot(unit(Status.HELD)))
    assert (decision.unit.status, decision.booking) == (Status.AVAILABLE, None)


def test_a_release_that_is_never_written_is_not_taken_for_what_was() -> None:
    """Decided just before the end of the hold, stored just after it, and looked at in between."""
    held = unit(Status.HELD)
    seen = as_seen(held, NOW + 2 * MINUTE)
    stored = held._replace(fields=FIELDS._replace(bedrooms=3), version=held.version + 1)
    assert (seen.status, seen.version) == (Status.AVAILABLE, stored.version)
    assert revision(seen, PROJECT) != revision(stored, PROJECT)


def test_every_status_has_a_revision_of_its_own() -> None:
    revisions = {revision(unit()._replace(status=status), PROJECT) for status in Status}
    assert len(revisions) == len(Status)
