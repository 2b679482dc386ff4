"""How many units one visitor or address may hold, and how soon again."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.booking import LiveHold
from holdfast.domain.errors import HeldTooRecently, TooManyHolds
from holdfast.domain.holds import check_rehold, free_slot
from tests.domain.bookings import MILLISECOND
from tests.domain.units import MINUTE, NOW

LIVE = NOW + MINUTE

holds = st.sets(st.integers(1, 15)).map(lambda taken: [LiveHold(slot, LIVE) for slot in sorted(taken)])


def test_the_lowest_free_place_is_given() -> None:
    assert free_slot([], 3, "This visitor", NOW) == 1
    assert free_slot([LiveHold(1, LIVE), LiveHold(3, LIVE)], 3, "This visitor", NOW) == 2


def test_as_many_holds_as_the_limit_says_and_not_one_more() -> None:
    taken = [LiveHold(slot, LIVE + slot * MINUTE) for slot in (1, 2, 3)]
    assert free_slot(taken[:2], 3, "This visitor", NOW) == 3
    with pytest.raises(TooManyHolds, match="This visitor holds 3 units already") as refused:
        free_slot(taken, 3, "This visitor", NOW)
    # Until the first of them is over.
    assert refused.value.retry_after_seconds == 120


def test_one_hold_is_one_place_however_often_it_is_told_of() -> None:
    assert free_slot([LiveHold(1, LIVE), LiveHold(1, LIVE + MINUTE)], 2, "This visitor", NOW) == 2


def test_no_limit_needs_no_places() -> None:
    assert free_slot([LiveHold(slot, LIVE) for slot in range(1, 100)], 0, "This visitor", NOW) is None


@given(holds, st.integers(1, 12))
def test_there_are_as_many_places_as_the_limit_says(held: list[LiveHold], limit: int) -> None:
    """Also when it was higher, and some are beyond it."""
    if len(held) < limit:
        free = set(range(1, limit + 1)) - {hold.slot for hold in held}
        assert free_slot(held, limit, "This visitor", NOW) == min(free)
        return
    with pytest.raises(TooManyHolds):
        free_slot(held, limit, "This visitor", NOW)


def test_a_hold_that_is_over_does_not_count_and_gives_up_its_place_last() -> None:
    over, live = LiveHold(1, NOW), LiveHold(2, LIVE)
    assert free_slot([over, live], 3, "This visitor", NOW) == 3
    assert free_slot([over, live], 2, "This visitor", NOW) == 1
    assert free_slot([over], 1, "This visitor", NOW) == 1
    with pytest.raises(TooManyHolds, match="holds 2 units"):
        free_slot([over, live, LiveHold(1, LIVE)], 2, "This visitor", NOW)


def test_after_a_lapse_the_same_visitor_waits() -> None:
    with pytest.raises(HeldTooRecently, match="for 60 s") as refused:
        check_rehold(NOW - timedelta(seconds=20.5), 60, NOW)
    assert refused.value.retry_after_seconds == 39.5
    with pytest.raises(HeldTooRecently):
        check_rehold(NOW - timedelta(seconds=60) + MILLISECOND, 60, NOW)


@pytest.mark.parametrize(
    ("lapsed_at", "wait"), [(None, 60), (NOW - timedelta(seconds=60), 60), (NOW, 0), (NOW - MINUTE, 0.5)]
)
def test_nobody_waits_without_a_lapse_after_the_wait_or_where_there_is_none(
    lapsed_at: None, wait: float
) -> None:
    check_rehold(lapsed_at, wait, NOW)
