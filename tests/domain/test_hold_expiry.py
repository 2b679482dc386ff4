"""What the clock writes for many units at once is what it writes for one."""

from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.booking import BookingStatus
from holdfast.domain.decision import UnitSnapshot, describe_change, expire
from holdfast.domain.holds import DueUnit, LiveBooking, expire_due_unit
from holdfast.domain.status import Status
from holdfast.domain.unit import ends_at
from tests.domain.bookings import booking
from tests.domain.units import NOW, PROJECT, unit

statuses = st.sampled_from([BookingStatus.OPEN, BookingStatus.SIGNED, BookingStatus.RESERVED])
moments = st.integers(-300_000, 300_000).map(lambda milliseconds: NOW + timedelta(milliseconds=milliseconds))


@st.composite
def lapsing(draw: st.DrawFn) -> UnitSnapshot:
    status, end, changed_at = draw(statuses), draw(moments), draw(moments)
    is_reserved = status is BookingStatus.RESERVED
    ends: dict[str, Any] = {
        "hold_expires_at": None if is_reserved else end,
        "reserved_until": end if is_reserved else None,
    }
    found = unit(
        Status.RESERVED if is_reserved else Status.HELD,
        version=draw(st.integers(1, 1000)),
        updated_at=changed_at,
        **ends,
    )
    claim = (
        booking(status, **{name: value for name, value in ends.items() if value})
        if draw(st.booleans())
        else None
    )
    return UnitSnapshot(PROJECT, found, booking=claim)


@given(lapsing())
def test_many_releases_are_each_the_release_of_one(found: UnitSnapshot) -> None:
    decision = expire(found)
    one, claim = found.unit, found.booking
    assert one is not None
    end = ends_at(one)
    assert end is not None
    made = expire_due_unit(
        DueUnit(one.id, one.project_id, one.status, end, one.version, one.updated_at, one.code, "tower"),
        None if claim is None else LiveBooking(claim.number, claim.reference, claim.status),
    )
    assert (made.unit_id, made.version, made.at) == (one.id, decision.unit.version, decision.unit.updated_at)
    assert (made.event,) == decision.events
    assert made.entry.change == describe_change(found, decision)
    assert (made.entry.subject_id, made.entry.at, made.entry.action) == (one.id, made.at, decision.action)
    if claim is None:
        assert (made.booking_number, made.entry.booking_reference, decision.booking) == (None, None, None)
        return
    assert decision.booking is not None
    assert (made.booking_number, made.entry.booking_reference) == (claim.number, claim.reference)
    assert (made.booking_status, made.ended_at) == (decision.booking.status, decision.booking.ended_at)
