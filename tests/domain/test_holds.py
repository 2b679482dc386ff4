"""A unit is opened, by whom it may be, and recognised by whom it was."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from holdfast.domain.booking import (
    CLAIMING,
    HOLDING,
    NOBODY,
    Booking,
    BookingStatus,
    Draft,
    Holder,
    LiveHold,
    Slots,
    unit_terms,
)
from holdfast.domain.decision import Decision, UnitSnapshot
from holdfast.domain.errors import (
    HeldTooRecently,
    HoldLapsed,
    NotAvailable,
    TooManyHolds,
    TooManyHoldsAtAddress,
    TransitionNotAllowed,
    UnknownUnit,
)
from holdfast.domain.event import EventName
from holdfast.domain.holds import NO_LIMITS, HoldLimits, HoldPeriods, HoldRequest, open_unit
from holdfast.domain.status import Status
from holdfast.domain.transitions import Caller
from tests.domain.bookings import DRAFT, OTHER_NUMBER, booking, claimed
from tests.domain.units import FIELDS, MINUTE, NOW, PROJECT, snapshot, unit

ADDRESS, VISITOR = UUID(int=7), UUID(int=8)
PERIODS = HoldPeriods(hold_seconds=120)


def opened(
    found: UnitSnapshot,
    draft: Draft = DRAFT,
    caller: Caller = Caller.BUYER,
    limits: HoldLimits = NO_LIMITS,
    token_hash: bytes | None = None,
) -> Decision:
    return open_unit(found, "A-101", HoldRequest(draft, caller, PERIODS, limits, token_hash), NOW)


def made(decision: Decision) -> Booking:
    assert decision.booking is not None
    return decision.booking


@pytest.mark.parametrize("caller", [Caller.BUYER, Caller.STAFF, Caller.ADMIN])
def test_an_available_unit_is_held_on_the_terms_of_the_moment(caller: Caller) -> None:
    decision = opened(snapshot(unit()), caller=caller)
    assert (decision.unit.status, decision.unit.hold_expires_at) == (Status.HELD, NOW + 2 * MINUTE)
    assert [event.type for event in decision.events] == [EventName.HELD]
    assert decision.events[0].booking_reference is None
    held = made(decision)
    assert (held.status, held.hold_expires_at) == (BookingStatus.OPEN, NOW + 2 * MINUTE)
    assert (held.number, held.reference, held.token_hash) == DRAFT[:3]
    assert (held.terms, held.holder, held.slots) == (unit_terms(FIELDS), DRAFT.holder, Slots())
    assert (held.project_id, held.unit_id, held.created_at) == (PROJECT.id, decision.unit.id, NOW)


def test_a_project_settles_how_long_its_holds_last() -> None:
    own = UnitSnapshot(PROJECT._replace(hold_seconds=0.5), unit())
    assert made(opened(own)).hold_expires_at == NOW + timedelta(milliseconds=500)


def test_a_unit_that_does_not_exist_cannot_be_opened() -> None:
    with pytest.raises(UnknownUnit):
        opened(snapshot(None))


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.AVAILABLE])
def test_a_buyer_is_told_that_a_unit_is_not_available(status: Status) -> None:
    found = unit(status)
    with pytest.raises(NotAvailable) as refused:
        opened(snapshot(found))
    assert (refused.value.status, refused.value.hold_expires_at) == (status, found.hold_expires_at)
    assert refused.value.retry_after_seconds == (60 if status is Status.HELD else None)


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.AVAILABLE])
def test_staff_are_told_what_the_status_table_says(status: Status) -> None:
    with pytest.raises(TransitionNotAllowed) as refused:
        opened(snapshot(unit(status)), caller=Caller.STAFF)
    assert refused.value.status is status
    assert str(refused.value).startswith("`open` is not possible")
    assert refused.value.retry_after_seconds == (60 if status is Status.HELD else None)


OWN: list[tuple[str, dict[str, Any], Draft, bytes | None]] = [
    (
        "the same request again",
        {"idempotency_id": UUID(int=9)},
        DRAFT._replace(idempotency_id=UUID(int=9), token_hash=b"a token"),
        None,
    ),
    ("a buyer who comes back", {}, DRAFT, b"a token"),
]


@pytest.mark.parametrize("status", sorted(HOLDING))
@pytest.mark.parametrize(
    ("facts", "draft", "token_hash"), [own[1:] for own in OWN], ids=[own[0] for own in OWN]
)
def test_nobody_is_blocked_by_their_own_hold(
    status: BookingStatus, facts: dict[str, Any], draft: Draft, token_hash: bytes | None
) -> None:
    found = claimed(status, **facts)
    strict = HoldLimits(1, 1, 60)
    decision = opened(found, draft, limits=strict, token_hash=token_hash)
    assert decision.unit is found.unit
    assert decision.booking is found.booking
    assert decision.events == ()


@pytest.mark.parametrize(
    ("draft", "token_hash"),
    [
        (DRAFT, None),
        (DRAFT, b"another token"),
        (DRAFT._replace(idempotency_id=UUID(int=10)), None),
        (DRAFT._replace(token_hash=b"a token"), None),
    ],
)
def test_a_stranger_is_not_taken_for_the_holder(draft: Draft, token_hash: bytes | None) -> None:
    found = claimed(idempotency_id=UUID(int=9))
    with pytest.raises(NotAvailable):
        opened(found, draft, token_hash=token_hash)


def test_two_requests_without_a_key_are_not_the_same_request() -> None:
    with pytest.raises(NotAvailable):
        opened(claimed(idempotency_id=None), DRAFT._replace(idempotency_id=None))


KEY = UUID(int=9)
SAME_REQUEST = DRAFT._replace(idempotency_id=KEY, token_hash=b"a token")


def keyed(status: BookingStatus, found: UnitSnapshot | None = None) -> UnitSnapshot:
    """A unit of which the same request has made a booking that is in this status now."""
    if status in CLAIMING:
        return claimed(status, idempotency_id=KEY)
    made_before = booking(status, idempotency_id=KEY)
    return (found or snapshot(unit()))._replace(others={made_before.number: made_before})


def test_the_hold_of_the_same_request_that_has_lapsed_is_told_as_lapsed() -> None:
    with pytest.raises(HoldLapsed) as refused:
        opened(keyed(BookingStatus.LAPSED), SAME_REQUEST)
    assert refused.value.status is Status.AVAILABLE


@pytest.mark.parametrize(
    "status", [status for status in BookingStatus if status not in {*HOLDING, BookingStatus.LAPSED}]
)
def test_the_same_request_makes_no_second_booking_whatever_became_of_the_first(status: BookingStatus) -> None:
    found = keyed(status)
    with pytest.raises(TransitionNotAllowed, match=f"is {status}") as refused:
        opened(found, SAME_REQUEST)
    assert found.unit is not None
    assert refused.value.status is found.unit.status


def test_the_same_request_is_not_given_a_token_that_opens_nothing_any_more() -> None:
    found = claimed(idempotency_id=KEY, token_hash=b"a reissued token")
    with pytest.raises(TransitionNotAllowed, match="issued anew"):
        opened(found, SAME_REQUEST)
    again = opened(found, SAME_REQUEST, token_hash=b"a reissued token")
    assert again.booking is found.booking


def test_who_has_the_token_of_the_hold_is_given_it_whatever_their_key_made_before() -> None:
    found = keyed(BookingStatus.CANCELLED, claimed(number=OTHER_NUMBER + 1, token_hash=b"their token"))
    decision = opened(found, SAME_REQUEST, token_hash=b"their token")
    assert decision.booking is found.booking
    assert decision.unit is found.unit


@pytest.mark.parametrize("status", [BookingStatus.RESERVED, BookingStatus.SOLD])
def test_the_token_of_a_booking_that_is_no_hold_any_more_holds_nothing(status: BookingStatus) -> None:
    with pytest.raises(NotAvailable):
        opened(claimed(status), token_hash=b"a token")


def test_a_hold_takes_a_place_of_its_visitor_and_one_of_its_address() -> None:
    live = {VISITOR: [LiveHold(1, NOW + MINUTE)], ADDRESS: [LiveHold(slot, NOW + MINUTE) for slot in (1, 2)]}
    found = UnitSnapshot(PROJECT, unit(), live_holds=live)
    assert made(opened(found, limits=HoldLimits(3, 20, 0))).slots == Slots(of_address=3, of_visitor=2)


@pytest.mark.parametrize(
    ("full", "refusal", "who"),
    [
        (VISITOR, TooManyHolds, "This visitor"),
        (ADDRESS, TooManyHoldsAtAddress, "Your network address"),
    ],
)
def test_each_of_the_limits_refuses_alone(full: UUID, refusal: type[TooManyHolds], who: str) -> None:
    live = {VISITOR: [], ADDRESS: [], full: [LiveHold(1, NOW + MINUTE), LiveHold(2, NOW + MINUTE)]}
    with pytest.raises(TooManyHolds, match=who) as refused:
        opened(UnitSnapshot(PROJECT, unit(), live_holds=live), limits=HoldLimits(2, 2, 0))
    assert refused.type is refusal


def test_staff_and_callers_without_a_cookie_need_no_places_of_it() -> None:
    found = snapshot(unit())
    assert made(opened(found, DRAFT._replace(holder=NOBODY), limits=HoldLimits(1, 1, 0))).slots == Slots()
    by_address = DRAFT._replace(holder=Holder(ADDRESS, None))
    assert made(opened(found, by_address, limits=HoldLimits(1, 1, 0))).slots == Slots(1, None)


def test_a_unit_that_is_not_free_is_refused_before_any_limit_is() -> None:
    live = {VISITOR: [LiveHold(1, NOW + MINUTE)]}
    with pytest.raises(NotAvailable):
        opened(claimed()._replace(live_holds=live), limits=HoldLimits(1, 1, 60))


def lapsed(seconds_ago: float, status: BookingStatus = BookingStatus.LAPSED, **others: Any) -> UnitSnapshot:
    ended = booking(status, ended_at=NOW - timedelta(seconds=seconds_ago), **others)
    return UnitSnapshot(PROJECT, unit(), others={ended.number: ended})


WAIT = HoldLimits(0, 0, 60)


@pytest.mark.parametrize(
    ("found", "token_hash"),
    [(lapsed(59, holder=Holder(None, VISITOR)), None), (lapsed(59), b"a token")],
    ids=["by cookie", "by token"],
)
def test_whoever_let_a_hold_lapse_waits(found: UnitSnapshot, token_hash: bytes | None) -> None:
    with pytest.raises(HeldTooRecently) as refused:
        opened(found, limits=WAIT, token_hash=token_hash)
    assert refused.value.retry_after_seconds == 1


def test_the_last_of_several_lapses_counts() -> None:
    ended = [
        booking(
            BookingStatus.LAPSED, number=number, holder=DRAFT.holder, ended_at=NOW - timedelta(seconds=ago)
        )
        for number, ago in ((1, 70), (2, 10), (3, 50))
    ]
    found = UnitSnapshot(PROJECT, unit(), others={one.number: one for one in ended})
    with pytest.raises(HeldTooRecently) as refused:
        opened(found, limits=WAIT)
    assert refused.value.retry_after_seconds == 50


@pytest.mark.parametrize(
    "found",
    [
        lapsed(60, holder=DRAFT.holder),
        lapsed(1),
        lapsed(1, holder=Holder(ADDRESS, None)),
        lapsed(1, BookingStatus.CANCELLED, holder=DRAFT.holder),
    ],
    ids=["waited", "another visitor", "the same address alone", "cancelled"],
)
def test_others_do_not_wait(found: UnitSnapshot) -> None:
    assert made(opened(found, limits=WAIT)).status is BookingStatus.OPEN


def test_where_there_is_no_wait_nobody_waits() -> None:
    assert made(opened(lapsed(1, holder=DRAFT.holder))).number == DRAFT.number
