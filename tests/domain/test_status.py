"""The status table, held against the contract's, written out once more by hand, and what its refusals say."""

from itertools import product

import pytest

from holdfast.domain.errors import Fault, InvalidInput, TransitionNotAllowed, UnknownBooking, raise_faults
from holdfast.domain.event import EventName
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Action, Caller, Transition, transition, transitions_for
from tests.domain.units import MINUTE, NOW

STAFF = {"staff", "admin"}
OFF_SALE = Status.UNAVAILABLE

# (action, callers, sources, target, event): the table of docs/state-machine.md.
CONTRACT: list[tuple[str, set[str], str, str, str | None]] = [
    ("open", {"buyer", *STAFF}, "available", "held", "unit.held"),
    ("extend", STAFF, "held", "held", None),
    ("extend", STAFF, "reserved", "reserved", None),
    ("lapse-hold", {"clock"}, "held", "available", "unit.released"),
    ("cancel-hold", {"buyer", *STAFF}, "held", "available", "unit.released"),
    ("confirm-deposit", {"payment system", *STAFF}, "held", "reserved", "unit.reserved"),
    ("lapse-reservation", {"clock"}, "reserved", "available", "unit.released"),
    ("cancel-reservation", STAFF, "reserved", "available", "unit.released"),
    ("close-sale", STAFF, "reserved, available", "sold", "unit.sold"),
    ("put-on-sale", {"API", *STAFF}, "unavailable", "available", "unit.available"),
    ("take-off-sale", {"API", *STAFF}, "available", "unavailable", "unit.unavailable"),
    ("take-off-sale", STAFF, "held, reserved", "unavailable", "unit.unavailable"),
    ("archive", STAFF, "available, held, reserved, unavailable", "unavailable", "unit.unavailable"),
    ("revoke-sale", {"admin"}, "sold", "unavailable", "unit.unavailable"),
]


@pytest.mark.parametrize(("status", "caller"), list(product(Status, Caller)))
@pytest.mark.parametrize("action", Action)
def test_every_action_is_what_the_contract_says(action: Action, status: Status, caller: Caller) -> None:
    rows = [row for row in CONTRACT if row[0] == action and status in row[2].split(", ")]
    expected = [row[3:] for row in rows if caller in row[1]]
    if not expected:
        with pytest.raises(TransitionNotAllowed) as refused:
            transition(action, caller, status, archived=False)
        assert refused.value.status is status
    else:
        row = transition(action, caller, status, archived=False)
        assert [(row.target, row.event)] == expected


def test_staff_alone_put_an_archived_unit_on_sale_again_and_nobody_archives_it_twice() -> None:
    assert transition(Action.PUT_ON_SALE, Caller.STAFF, Status.UNAVAILABLE, True).target is Status.AVAILABLE
    for action, caller in ((Action.PUT_ON_SALE, Caller.API), (Action.ARCHIVE, Caller.STAFF)):
        with pytest.raises(TransitionNotAllowed, match="archived"):
            transition(action, caller, Status.UNAVAILABLE, archived=True)


def test_every_event_name_is_emitted_by_some_transition() -> None:
    assert {row.event for row in TRANSITIONS if row.event} == set(EventName)


def allowed(action: Action, caller: Caller, status: Status, archived: bool) -> list[Transition]:
    try:
        return [transition(action, caller, status, archived)]
    except TransitionNotAllowed:
        return []


@pytest.mark.parametrize(("caller", "status", "archived"), list(product(Caller, Status, (False, True))))
def test_possible_actions_are_offered_in_their_order(caller: Caller, status: Status, archived: bool) -> None:
    possible = [row for action in Action for row in allowed(action, caller, status, archived)]
    offered = list(transitions_for(caller, status, archived))
    assert offered == sorted(possible, key=TRANSITIONS.index)


LOSSES = {
    "held": {"lapse-hold", "cancel-hold", "take-off-sale", "archive"},
    "reserved": {"lapse-reservation", "cancel-reservation", "take-off-sale", "archive"},
    "sold": {"revoke-sale"},
}


@pytest.mark.parametrize("row", TRANSITIONS, ids=lambda row: f"{row.action} from {row.source}")
def test_a_transition_says_what_the_buyer_loses_by_it(row: Transition) -> None:
    assert row.ends == (row.source if row.action in LOSSES.get(row.source, ()) else None)


def refusal(action: Action, caller: Caller, status: Status, archived: bool = False) -> TransitionNotAllowed:
    hold_expires_at = NOW + MINUTE if status is Status.HELD else None
    with pytest.raises(TransitionNotAllowed) as refused:
        transition(action, caller, status, archived, hold_expires_at, NOW)
    return refused.value


def test_the_caller_is_named_only_where_another_could_do_it() -> None:
    for action, caller, status, archived, sentence in (
        (Action.CLOSE_SALE, Caller.STAFF, Status.SOLD, False, "while the unit is sold."),
        (Action.REVOKE_SALE, Caller.STAFF, Status.SOLD, False, "for this caller while the unit is sold."),
        (Action.ARCHIVE, Caller.STAFF, OFF_SALE, True, "while the unit is archived."),
        (Action.PUT_ON_SALE, Caller.API, OFF_SALE, True, "for this caller while the unit is archived."),
    ):
        assert str(refusal(action, caller, status, archived)) == f"`{action}` is not possible {sentence}"


@pytest.mark.parametrize("caller", [Caller.STAFF, Caller.BUYER, Caller.ADMIN])
@pytest.mark.parametrize("action", Action)
def test_the_end_of_a_hold_is_told_where_it_helps_to_wait_for_it(action: Action, caller: Caller) -> None:
    sources = {row.source for row in TRANSITIONS if row.action is action and caller in row.callers}
    if Status.HELD in sources:
        return
    refused = refusal(action, caller, Status.HELD)
    expected = (NOW + MINUTE, 60) if Status.AVAILABLE in sources else (None, None)
    assert (refused.hold_expires_at, refused.retry_after_seconds) == expected


def test_faults_are_raised_together_and_none_are_nothing() -> None:
    raise_faults([None, None])
    faults = [Fault(f"/{number}", "Wrong.") for number in range(4)]
    with pytest.raises(InvalidInput, match=r"^0: Wrong\. 1: Wrong\. 2: Wrong\. And 1 more\.$") as refused:
        raise_faults([None, *faults])
    assert refused.value.faults == tuple(faults)


def test_of_a_reference_that_is_long_only_the_beginning_is_repeated() -> None:
    sentence = f"There is no booking `{'x' * 50}` that your key or token gives access to."
    assert str(UnknownBooking("x" * 51)) == sentence
