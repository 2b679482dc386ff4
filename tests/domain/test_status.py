"""The status table, held against the contract's, written out once more by hand."""

from itertools import product

import pytest

from holdfast.domain.errors import TransitionNotAllowed
from holdfast.domain.event import EventName
from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Action, Caller, Transition, transition, transitions_for

STAFF = {"staff", "admin"}

# (action, callers, source, target, event): the table of docs/state-machine.md.
CONTRACT: list[tuple[str, set[str], str, str, str | None]] = [
    ("open", {"buyer", *STAFF}, "available", "held", "unit.held"),
    ("extend", STAFF, "held", "held", None),
    ("extend", STAFF, "reserved", "reserved", None),
    ("lapse-hold", {"clock"}, "held", "available", "unit.released"),
    ("cancel-hold", {"buyer", *STAFF}, "held", "available", "unit.released"),
    ("confirm-deposit", {"payment system", *STAFF}, "held", "reserved", "unit.reserved"),
    ("lapse-reservation", {"clock"}, "reserved", "available", "unit.released"),
    ("cancel-reservation", STAFF, "reserved", "available", "unit.released"),
    ("close-sale", STAFF, "reserved", "sold", "unit.sold"),
    ("close-sale", STAFF, "available", "sold", "unit.sold"),
    ("put-on-sale", {"API", *STAFF}, "unavailable", "available", "unit.available"),
    ("take-off-sale", {"API", *STAFF}, "available", "unavailable", "unit.unavailable"),
    ("take-off-sale", STAFF, "held", "unavailable", "unit.unavailable"),
    ("take-off-sale", STAFF, "reserved", "unavailable", "unit.unavailable"),
    ("archive", STAFF, "available", "unavailable", "unit.unavailable"),
    ("archive", STAFF, "held", "unavailable", "unit.unavailable"),
    ("archive", STAFF, "reserved", "unavailable", "unit.unavailable"),
    ("archive", STAFF, "unavailable", "unavailable", "unit.unavailable"),
    ("revoke-sale", {"admin"}, "sold", "unavailable", "unit.unavailable"),
]


@pytest.mark.parametrize(("action", "status", "caller"), list(product(Action, Status, Caller)))
def test_each_action_from_each_status_by_each_caller_is_what_the_contract_says(
    action: Action, status: Status, caller: Caller
) -> None:
    expected = [row[3:] for row in CONTRACT if (row[0], row[2]) == (action, status) and caller in row[1]]
    if not expected:
        with pytest.raises(TransitionNotAllowed) as refusal:
            transition(action, caller, status, archived=False)
        assert refusal.value.status is status
    else:
        row = transition(action, caller, status, archived=False)
        assert [(row.target, row.event)] == expected


def test_staff_put_an_archived_unit_on_sale_again() -> None:
    assert transition(Action.PUT_ON_SALE, Caller.STAFF, Status.UNAVAILABLE, True).target is Status.AVAILABLE


@pytest.mark.parametrize(
    ("action", "caller"), [(Action.PUT_ON_SALE, Caller.API), (Action.ARCHIVE, Caller.STAFF)]
)
def test_neither_the_api_puts_an_archived_unit_on_sale_nor_is_it_archived_twice(
    action: Action, caller: Caller
) -> None:
    with pytest.raises(TransitionNotAllowed, match="archived"):
        transition(action, caller, Status.UNAVAILABLE, archived=True)


def test_every_event_name_is_emitted_by_some_transition() -> None:
    assert {row.event for row in TRANSITIONS if row.event} == set(EventName)


def is_possible(action: Action, caller: Caller, status: Status, archived: bool) -> bool:
    try:
        transition(action, caller, status, archived)
    except TransitionNotAllowed:
        return False
    return True


@pytest.mark.parametrize(("caller", "status", "archived"), list(product(Caller, Status, (False, True))))
def test_the_actions_that_are_offered_are_those_that_are_possible(
    caller: Caller, status: Status, archived: bool
) -> None:
    possible = {action for action in Action if is_possible(action, caller, status, archived)}
    offered = [row.action for row in transitions_for(caller, status, archived)]
    assert set(offered) == possible
    assert len(offered) == len(possible)


@pytest.mark.parametrize(("caller", "status", "archived"), list(product(Caller, Status, (False, True))))
def test_what_is_offered_is_told_as_it_will_be_done(caller: Caller, status: Status, archived: bool) -> None:
    for row in transitions_for(caller, status, archived):
        assert row == transition(row.action, caller, status, archived)


def test_actions_stand_in_the_order_of_the_table() -> None:
    rows = transitions_for(Caller.STAFF, Status.AVAILABLE, archived=False)
    assert [row.action for row in rows] == [
        Action.OPEN,
        Action.CLOSE_SALE,
        Action.TAKE_OFF_SALE,
        Action.ARCHIVE,
    ]


def is_told_to_end(row: Transition) -> Status | None:
    """In words: who has a unit and does not go on to have it loses what they had."""
    loses = {
        "lapse-hold": "held",
        "cancel-hold": "held",
        "lapse-reservation": "reserved",
        "cancel-reservation": "reserved",
        "take-off-sale": row.source if row.source in ("held", "reserved") else None,
        "archive": row.source if row.source in ("held", "reserved") else None,
        "revoke-sale": "sold",
    }.get(row.action)
    return None if loses is None else Status(loses)


@pytest.mark.parametrize("row", TRANSITIONS, ids=lambda row: f"{row.action} from {row.source}")
def test_a_transition_tells_what_the_buyer_loses_by_it(row: Transition) -> None:
    assert row.ends == is_told_to_end(row)
