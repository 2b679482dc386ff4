"""What a refusal of the status table tells: whom it concerns, and whether it helps to wait."""

import pytest

from holdfast.domain.errors import TransitionNotAllowed, UnknownBooking
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Action, Caller
from holdfast.domain.unit import Unit, allowed_transition
from tests.domain.units import MINUTE, NOW, unit


def refused(found: Unit, action: Action, caller: Caller) -> TransitionNotAllowed:
    with pytest.raises(TransitionNotAllowed) as refusal:
        allowed_transition(found, action, caller, NOW)
    return refusal.value


@pytest.mark.parametrize(
    ("found", "action", "caller", "sentence"),
    [
        (
            unit(Status.SOLD),
            Action.CLOSE_SALE,
            Caller.STAFF,
            "`close-sale` is not possible while the unit is sold.",
        ),
        (
            unit(Status.SOLD),
            Action.REVOKE_SALE,
            Caller.STAFF,
            "`revoke-sale` is not possible for this caller while the unit is sold.",
        ),
        (
            unit(Status.UNAVAILABLE, archived=True),
            Action.ARCHIVE,
            Caller.STAFF,
            "`archive` is not possible while the unit is archived.",
        ),
        (
            unit(Status.UNAVAILABLE, archived=True),
            Action.PUT_ON_SALE,
            Caller.API,
            "`put-on-sale` is not possible for this caller while the unit is archived.",
        ),
    ],
)
def test_the_caller_is_named_only_where_another_could_do_it(
    found: Unit, action: Action, caller: Caller, sentence: str
) -> None:
    assert str(refused(found, action, caller)) == sentence


@pytest.mark.parametrize("caller", [Caller.STAFF, Caller.BUYER, Caller.ADMIN])
@pytest.mark.parametrize("action", Action)
def test_the_end_of_a_hold_is_told_where_it_helps_to_wait_for_it(action: Action, caller: Caller) -> None:
    rows = [row for row in TRANSITIONS if row.action is action and caller in row.callers]
    if any(row.source is Status.HELD for row in rows):
        return
    refusal = refused(unit(Status.HELD), action, caller)
    if any(row.source is Status.AVAILABLE for row in rows):
        assert (refusal.hold_expires_at, refusal.retry_after_seconds) == (NOW + MINUTE, 60)
    else:
        assert (refusal.hold_expires_at, refusal.retry_after_seconds) == (None, None)


def test_of_a_reference_that_is_long_only_the_beginning_is_told() -> None:
    assert str(UnknownBooking("x" * 51)) == f"There is no booking `{'x' * 50}` for this caller."
