"""The status table, held against the contract's, written out once more by hand."""

from itertools import product

import pytest

from holdfast.domain.event import EventName
from holdfast.domain.refusals import TransitionNotAllowed
from holdfast.domain.status import TRANSITIONS, Action, Caller, Status, transition

STAFF = {"staff", "admin"}

# action: {source: (target, event, callers)}; part 4 of the contract, line by line.
CONTRACT: dict[str, dict[str, tuple[str, str | None, set[str]]]] = {
    "open": {"available": ("held", "unit.held", {"buyer", *STAFF})},
    "extend": {"held": ("held", None, STAFF), "reserved": ("reserved", None, STAFF)},
    "lapse-hold": {"held": ("available", "unit.released", {"clock"})},
    "cancel-hold": {"held": ("available", "unit.released", {"buyer", *STAFF})},
    "confirm-deposit": {"held": ("reserved", "unit.reserved", {"payment system", *STAFF})},
    "lapse-reservation": {"reserved": ("available", "unit.released", {"clock"})},
    "cancel-reservation": {"reserved": ("available", "unit.released", STAFF)},
    "close-sale": {"reserved": ("sold", "unit.sold", STAFF), "available": ("sold", "unit.sold", STAFF)},
    "put-on-sale": {"unavailable": ("available", "unit.available", {"API", *STAFF})},
    "take-off-sale": {
        "available": ("unavailable", "unit.unavailable", {"API", *STAFF}),
        "held": ("unavailable", "unit.unavailable", STAFF),
        "reserved": ("unavailable", "unit.unavailable", STAFF),
    },
    "archive": dict.fromkeys(
        ("available", "held", "reserved", "unavailable"), ("unavailable", "unit.unavailable", STAFF)
    ),
    "revoke-sale": {"sold": ("unavailable", "unit.unavailable", {"admin"})},
}


@pytest.mark.parametrize(("action", "status", "caller"), list(product(Action, Status, Caller)))
def test_each_action_from_each_status_by_each_caller_is_what_the_contract_says(
    action: Action, status: Status, caller: Caller
) -> None:
    expected = CONTRACT[action].get(status)
    if expected is None or caller not in expected[2]:
        with pytest.raises(TransitionNotAllowed) as refusal:
            transition(action, caller, status, archived=False)
        assert refusal.value.status is status
    else:
        row = transition(action, caller, status, archived=False)
        assert (row.target, row.event) == expected[:2]


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
