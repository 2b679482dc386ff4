"""Holds: how a unit is opened and by whom, limits, lengths, and expiry of many at once."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import errors, holds
from holdfast.domain.booking import NOBODY, BookingStatus, Draft, Holder, LiveHold, Slots, unit_terms
from holdfast.domain.decision import Decision, UnitSnapshot, describe_change, expire
from holdfast.domain.errors import NotAvailable, TooManyHolds, TransitionNotAllowed
from holdfast.domain.event import EventName
from holdfast.domain.holds import NO_LIMITS, HoldLimits, HoldPeriods, HoldRequest, free_slot, open_unit
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from holdfast.domain.unit import ends_at
from tests.domain.bookings import DRAFT, OTHER_NUMBER, PERIODS, UNIT_STATUS, booking, changed, claimed
from tests.domain.units import DAY, FIELDS, MILLISECOND, MINUTE, NOW, PROJECT, snapshot, unit

ADDRESS, VISITOR, KEY = UUID(int=7), UUID(int=8), UUID(int=9)
SAME_REQUEST = DRAFT._replace(idempotency_id=KEY, token_hash=b"a token")


def opened(
    found: UnitSnapshot,
    draft: Draft = DRAFT,
    caller: Caller = Caller.BUYER,
    limits: HoldLimits = NO_LIMITS,
    token_hash: bytes | None = None,
) -> Decision:
    return open_unit(found, "A-101", HoldRequest(draft, caller, PERIODS, limits, token_hash), NOW)


@pytest.mark.parametrize("caller", [Caller.BUYER, Caller.STAFF, Caller.ADMIN])
def test_an_available_unit_is_held_on_its_present_terms(caller: Caller) -> None:
    decision = opened(snapshot(unit()), caller=caller)
    assert (decision.unit.status, decision.unit.hold_expires_at) == (Status.HELD, NOW + 2 * MINUTE)
    assert [(event.type, event.booking_reference) for event in decision.events] == [(EventName.HELD, None)]
    held = changed(decision)
    assert (held.status, held.hold_expires_at) == (BookingStatus.OPEN, NOW + 2 * MINUTE)
    assert (held.number, held.reference, held.token_hash) == DRAFT[:3]
    assert (held.terms, held.holder, held.slots) == (unit_terms(FIELDS), DRAFT.holder, Slots())
    assert (held.project_id, held.unit_id, held.created_at) == (PROJECT.id, decision.unit.id, NOW)


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        (Status.HELD, "The unit is held. If the hold is yours, send its token."),
        (Status.RESERVED, "The unit is reserved."),
        (Status.SOLD, "The unit is sold."),
        (Status.UNAVAILABLE, "The unit is not on sale."),
    ],
)
def test_a_unit_that_is_not_available_cannot_be_opened(status: Status, sentence: str) -> None:
    found = unit(status)
    with pytest.raises(NotAvailable) as refused:
        opened(snapshot(found))
    assert str(refused.value) == sentence
    assert refused.value.hold_expires_at == found.hold_expires_at
    with pytest.raises(TransitionNotAllowed, match="`open` is not possible") as staff_refused:
        opened(snapshot(found), caller=Caller.STAFF)
    for conflict in (refused.value, staff_refused.value):
        assert conflict.status is status
        assert conflict.retry_after_seconds == (60 if status is Status.HELD else None)


# The same buyer, and the same request, again


@pytest.mark.parametrize(
    ("status", "draft", "token_hash"),
    [
        (BookingStatus.OPEN, SAME_REQUEST, None),
        (BookingStatus.OPEN, DRAFT, b"a token"),
        (BookingStatus.SIGNED, SAME_REQUEST, b"a token"),
    ],
)
def test_nobody_is_blocked_by_their_own_hold(
    status: BookingStatus, draft: Draft, token_hash: bytes | None
) -> None:
    found = claimed(status, idempotency_id=KEY, holder=DRAFT.holder)
    decision = opened(found, draft, limits=HoldLimits(1, 1, 60), token_hash=token_hash)
    assert (decision.unit, decision.booking, decision.events) == (found.unit, found.booking, ())


@pytest.mark.parametrize(
    ("holder", "seconds", "is_repeated"),
    [
        (Holder(ADDRESS, VISITOR), 0, True),
        (Holder(ADDRESS), 60, True),
        (Holder(ADDRESS), 60.001, False),
        (Holder(UUID(int=1), VISITOR), 200, True),
        (Holder(UUID(int=1)), 0, False),
        (Holder(ADDRESS, UUID(int=1)), 61, False),
    ],
)
def test_a_request_is_repeated_to_the_same_visitor_and_for_a_minute_to_the_same_address(
    holder: Holder, seconds: float, is_repeated: bool
) -> None:
    found = claimed(
        idempotency_id=KEY, holder=Holder(ADDRESS, VISITOR), created_at=NOW - timedelta(seconds=seconds)
    )
    if is_repeated:
        assert opened(found, SAME_REQUEST._replace(holder=holder)).booking is found.booking
        return
    with pytest.raises(errors.IdempotencyKeyUsed) as used:
        opened(found, SAME_REQUEST._replace(holder=holder))
    assert used.value.status is Status.HELD


def test_a_visitor_without_a_cookie_is_not_every_visitor_without_one() -> None:
    found = claimed(idempotency_id=KEY, holder=Holder(ADDRESS))
    with pytest.raises(errors.IdempotencyKeyUsed):
        opened(found, SAME_REQUEST._replace(holder=Holder(UUID(int=1))))


def test_a_stranger_is_not_taken_for_the_holder() -> None:
    for key, draft, token_hash in (
        (KEY, DRAFT, None),
        (KEY, DRAFT, b"another token"),
        (KEY, DRAFT._replace(idempotency_id=UUID(int=10)), None),
        (KEY, DRAFT._replace(token_hash=b"a token"), None),
        (None, DRAFT._replace(idempotency_id=None), None),
    ):
        with pytest.raises(NotAvailable):
            opened(claimed(idempotency_id=key), draft, token_hash=token_hash)
    # Nor is the token of a booking that is no hold any more.
    for status in (BookingStatus.RESERVED, BookingStatus.SOLD):
        with pytest.raises(NotAvailable):
            opened(claimed(status), token_hash=b"a token")


def made_before(status: BookingStatus, found: UnitSnapshot | None = None) -> UnitSnapshot:
    """A unit of which the same request has made a booking that is in this status now."""
    if status in UNIT_STATUS:
        return claimed(status, idempotency_id=KEY)
    first = booking(status, idempotency_id=KEY)
    return (found or snapshot(unit()))._replace(others={first.number: first})


@pytest.mark.parametrize("status", [status for status in BookingStatus if status is not BookingStatus.OPEN])
def test_the_same_request_makes_no_second_booking_whatever_became_of_the_first(status: BookingStatus) -> None:
    found = made_before(status)
    assert found.unit is not None
    is_lapsed = status is BookingStatus.LAPSED
    with pytest.raises(errors.HoldLapsed if is_lapsed else errors.IdempotencyKeyUsed) as refused:
        opened(found, SAME_REQUEST)
    assert refused.value.status is found.unit.status


def test_the_same_request_is_not_given_a_token_that_was_replaced_but_the_hold_for_its_token() -> None:
    found = claimed(idempotency_id=KEY, token_hash=b"a reissued token")
    with pytest.raises(errors.IdempotencyKeyUsed):
        opened(found, SAME_REQUEST)
    assert opened(found, SAME_REQUEST, token_hash=b"a reissued token").booking is found.booking
    # The token of the hold counts before the key of the request.
    found = made_before(BookingStatus.CANCELLED, claimed(number=OTHER_NUMBER + 1, token_hash=b"their token"))
    decision = opened(found, SAME_REQUEST, token_hash=b"their token")
    assert (decision.booking, decision.unit) == (found.booking, found.unit)


# Limits

LIVE = NOW + MINUTE
live_holds = st.sets(st.integers(1, 15)).map(lambda taken: [LiveHold(slot, LIVE) for slot in sorted(taken)])


def test_a_hold_takes_a_slot_of_its_visitor_and_one_of_its_address_where_they_are_known() -> None:
    live = {VISITOR: [LiveHold(1, LIVE)], ADDRESS: [LiveHold(1, LIVE), LiveHold(2, LIVE)]}
    found = UnitSnapshot(PROJECT, unit(), live_holds=live)
    assert changed(opened(found, limits=HoldLimits(3, 20, 0))).slots == Slots(of_address=3, of_visitor=2)
    # Staff and callers without a cookie need none of a visitor.
    for holder, slots in ((NOBODY, Slots()), (Holder(ADDRESS, None), Slots(1, None))):
        decision = opened(snapshot(unit()), DRAFT._replace(holder=holder), limits=HoldLimits(1, 1, 0))
        assert changed(decision).slots == slots


@pytest.mark.parametrize(
    ("full", "refusal", "who"),
    [
        (VISITOR, TooManyHolds, "This visitor"),
        (ADDRESS, errors.TooManyHoldsAtAddress, "Your network address"),
    ],
)
def test_each_limit_refuses_alone_after_the_status(full: UUID, refusal: type[TooManyHolds], who: str) -> None:
    live = {VISITOR: [], ADDRESS: [], full: [LiveHold(1, LIVE), LiveHold(2, LIVE)]}
    with pytest.raises(TooManyHolds, match=who) as refused:
        opened(UnitSnapshot(PROJECT, unit(), live_holds=live), limits=HoldLimits(2, 2, 0))
    assert refused.type is refusal
    with pytest.raises(NotAvailable):
        opened(claimed()._replace(live_holds=live), limits=HoldLimits(2, 2, 60))


def test_a_full_limit_says_when_the_first_hold_ends_and_an_expired_one_gives_up_its_slot_last() -> None:
    taken = [LiveHold(slot, NOW + slot * 2 * MINUTE) for slot in (1, 2, 3)]
    with pytest.raises(TooManyHolds, match="This visitor already holds 3 units") as refused:
        free_slot(taken, 3, "This visitor", NOW)
    assert refused.value.retry_after_seconds == 120
    over, live = LiveHold(1, NOW), LiveHold(2, LIVE)
    assert free_slot([over, live], 3, "This visitor", NOW) == 3
    assert free_slot([over, live], 2, "This visitor", NOW) == 1
    assert free_slot([over], 1, "This visitor", NOW) == 1
    assert free_slot([LiveHold(1, LIVE), LiveHold(1, LIVE + MINUTE)], 2, "This visitor", NOW) == 2
    with pytest.raises(TooManyHolds, match="holds 2 units"):
        free_slot([over, live, LiveHold(1, LIVE)], 2, "This visitor", NOW)


@given(live_holds, st.integers(1, 12))
def test_there_are_as_many_slots_as_the_limit_says(held: list[LiveHold], limit: int) -> None:
    """Also when it was higher, and some are beyond it. No limit needs no slot."""
    assert free_slot(held, 0, "This visitor", NOW) is None
    if len(held) < limit:
        free = set(range(1, limit + 1)) - {hold.slot for hold in held}
        assert free_slot(held, limit, "This visitor", NOW) == min(free)
        return
    with pytest.raises(TooManyHolds):
        free_slot(held, limit, "This visitor", NOW)


# The wait after a hold that lapsed


def ended(*seconds_ago: float, status: BookingStatus = BookingStatus.LAPSED, **others: Any) -> UnitSnapshot:
    """A free unit with bookings that ended so long ago."""
    bookings = {
        number: booking(status, number=number, ended_at=NOW - timedelta(seconds=ago), **others)
        for number, ago in enumerate(seconds_ago)
    }
    return UnitSnapshot(PROJECT, unit(), others=bookings)


@pytest.mark.parametrize(
    ("found", "token_hash", "seconds"),
    [
        (ended(59, holder=Holder(None, VISITOR)), None, 1),
        (ended(59.999), b"a token", 0.001),
        (ended(70, 10, 50, holder=DRAFT.holder), None, 50),
    ],
    ids=["by cookie", "by token", "the last of several"],
)
def test_who_let_a_hold_lapse_waits(found: UnitSnapshot, token_hash: bytes | None, seconds: float) -> None:
    with pytest.raises(errors.HeldTooRecently, match="for 60 s") as refused:
        opened(found, limits=HoldLimits(0, 0, 60), token_hash=token_hash)
    assert refused.value.retry_after_seconds == seconds
    assert opened(found, token_hash=token_hash).booking, "without such a limit"


def test_others_do_not_wait() -> None:
    waited, another_visitor = ended(60, holder=DRAFT.holder), ended(1)
    same_address_alone = ended(1, holder=Holder(ADDRESS, None))
    cancelled = ended(1, status=BookingStatus.CANCELLED, holder=DRAFT.holder)
    for found in (waited, another_visitor, same_address_alone, cancelled):
        assert changed(opened(found, limits=HoldLimits(0, 0, 60))).status is BookingStatus.OPEN


# Lengths

LONGEST = holds.LONGEST_RESERVATION_DAYS * DAY
LAST_MOMENT = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)


def test_a_project_has_the_periods_of_the_server_unless_it_has_its_own() -> None:
    assert (PERIODS.hold(PROJECT), PERIODS.reservation(PROJECT)) == (2 * MINUTE, 2 * DAY)
    own = PROJECT._replace(hold_seconds=1.5, reservation_days=0.5)
    assert (PERIODS.hold(own), PERIODS.reservation(own)) == (timedelta(seconds=1.5), DAY / 2)
    assert changed(opened(UnitSnapshot(own, unit()))).hold_expires_at == NOW + timedelta(seconds=1.5)


@given(st.floats(0, 604_800, exclude_min=True), st.floats(0, 3_650, exclude_min=True))
def test_periods_are_whole_milliseconds_and_never_nothing(seconds: float, days: float) -> None:
    own = PROJECT._replace(hold_seconds=seconds, reservation_days=days)
    periods = (HoldPeriods().hold(own), seconds), (HoldPeriods().reservation(own), days * 86_400)
    for period, wanted in periods:
        assert period >= MILLISECOND
        assert period % MILLISECOND == timedelta(0)
        assert abs(period.total_seconds() - wanted) <= 0.001


def test_an_extension_is_one_more_period_or_ends_when_asked_within_bounds() -> None:
    assert holds.extended_end(LIVE, None, 5 * MINUTE, NOW) == NOW + 6 * MINUTE
    for asked in (LIVE, LIVE + MILLISECOND, NOW + LONGEST):
        assert holds.extended_end(LIVE, asked, 5 * MINUTE, NOW) == asked
    # One more period may lead beyond the end of time.
    too_late = NOW + LONGEST + MILLISECOND
    for end, wrong in ((LIVE, LIVE - MILLISECOND), (LIVE, NOW), (LIVE, too_late), (LAST_MOMENT, None)):
        with pytest.raises(errors.InvalidInput) as refused:
            holds.extended_end(end, wrong, LONGEST, NOW)
        assert [fault.pointer for fault in refused.value.faults] == ["/until"]
    # Some are refused whatever the unit is.
    for wrong in (NOW, too_late):
        with pytest.raises(errors.InvalidInput, match="until"):
            holds.check_end(wrong, NOW)
    for possible in (None, NOW + MILLISECOND, NOW + LONGEST):
        holds.check_end(possible, NOW)


# Expiry of many units at once


@st.composite
def lapsing(draw: st.DrawFn) -> UnitSnapshot:
    status = draw(st.sampled_from([BookingStatus.OPEN, BookingStatus.SIGNED, BookingStatus.RESERVED]))
    end, changed_at = (NOW + draw(st.integers(-300_000, 300_000)) * MILLISECOND for _ in range(2))
    column = "reserved_until" if status is BookingStatus.RESERVED else "hold_expires_at"
    ends: dict[str, Any] = {column: end}
    version = draw(st.integers(1, 1000))
    found = unit(UNIT_STATUS[status], version=version, updated_at=changed_at, **ends)
    claim = booking(status, **ends) if draw(st.booleans()) else None
    return UnitSnapshot(PROJECT, found, booking=claim)


@given(lapsing())
def test_the_expiry_of_many_units_writes_the_same_as_that_of_one(found: UnitSnapshot) -> None:
    decision = expire(found)
    one, claim = found.unit, found.booking
    assert one is not None
    end = ends_at(one)
    assert end is not None
    due = holds.DueUnit(one.id, one.project_id, one.status, end, one.version, one.updated_at, one.code, "p-1")
    live = None if claim is None else holds.LiveBooking(claim.number, claim.reference, claim.status)
    made = holds.expire_due_unit(due, live)
    assert (made.unit_id, made.version, made.at) == (one.id, decision.unit.version, decision.unit.updated_at)
    assert (made.event,) == decision.events
    assert made.entry.change == describe_change(found, decision)
    assert (made.entry.subject_id, made.entry.at, made.entry.action) == (one.id, made.at, decision.action)
    named = (claim.number, claim.reference) if claim else (None, None)
    assert (made.booking_number, made.entry.booking_reference) == named
    if decision.booking is not None:
        assert (made.booking_status, made.ended_at) == (decision.booking.status, decision.booking.ended_at)
