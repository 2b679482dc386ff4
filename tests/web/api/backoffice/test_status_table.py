"""The status table, action by action, as every kind of caller meets it.

What is expected is read from the table itself, which a test of the domain holds against the contract.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import httpx
import pytest

from holdfast.domain.errors import TransitionNotAllowed
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.transitions import Action, Caller, Transition, transition
from tests.support.backoffice import BUYER, Desk, ask_for_hold
from tests.support.bodies import full
from tests.support.client import Unit
from tests.support.feed import Feed
from tests.support.problems import conflict, problem
from tests.web.api.backoffice.conditions import MID_SALE, Condition, Office

Watch = Callable[[], tuple[str, list[str], int]]


def row_of(action: Action, caller: Caller, condition: Condition) -> Transition | None:
    try:
        return transition(action, caller, condition.status, condition is Condition.ARCHIVED)
    except TransitionNotAllowed:
        return None


def body_of(action: Action, condition: Condition) -> object:
    walk_in = action is Action.CLOSE_SALE and condition is Condition.AVAILABLE
    return BUYER if walk_in else None


@pytest.fixture
def watch(stored: Unit, admin: Desk, feed: Feed) -> Watch:
    """All that a change of the unit leaves: its ETag, its events, its history."""
    return lambda: (stored.etag, feed.types_of(stored), len(admin.history(stored)))


def expect_step(unit: Unit, row: Transition, before: tuple[Any, ...], after: tuple[Any, ...]) -> None:
    assert unit.read()["status"] == row.target
    assert after[0] != before[0]
    assert after[1] == before[1] + ([str(row.event)] if row.event else [])
    assert after[2] == before[2] + 1


@pytest.mark.parametrize("caller", [Caller.STAFF, Caller.ADMIN])
@pytest.mark.parametrize(("action", "condition"), list(product(Action, Condition)))
def test_staff_do_what_the_table_allows_and_nothing_else(
    action: Action,
    condition: Condition,
    caller: Caller,
    stored: Unit,
    office: Office,
    desk: Desk,
    watch: Watch,
) -> None:
    office.bring(stored, condition)
    before = watch()
    actor = office.desk if caller is Caller.ADMIN else desk
    response = actor.act(stored, action, body_of(action, condition))
    row = row_of(action, caller, condition)
    if action is Action.REVOKE_SALE and caller is not Caller.ADMIN:
        problem(response, 403)
    elif row is None:
        conflict(response, "transition-not-allowed", condition.status)
    elif action is Action.CONFIRM_DEPOSIT and condition is Condition.HELD:
        conflict(response, "not-signed", "held")
    else:
        assert response.status_code == 200, response.text
        assert response.json()["status"] == row.target
        expect_step(stored, row, before, watch())
        return
    assert watch() == before


@pytest.mark.parametrize(("action", "condition"), list(product(Action, Condition)))
def test_neither_payment_systems_nor_the_integration_api_act_on_units(
    action: Action, condition: Condition, stored: Unit, office: Office, payments: Desk, integration: Desk
) -> None:
    office.bring(stored, condition)
    etag = stored.etag
    for other in (payments, integration):
        response = other.act(stored, action, body_of(action, condition))
        problem(response, 403)
        assert 'error="insufficient_scope"' in response.headers["www-authenticate"]
    assert stored.etag == etag


@pytest.mark.parametrize("condition", Condition)
@pytest.mark.parametrize(
    ("status", "action"), [("available", Action.PUT_ON_SALE), ("unavailable", Action.TAKE_OFF_SALE)]
)
@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_the_integration_api_sets_the_status_where_the_table_lets_it(
    status: str,
    action: Action,
    condition: Condition,
    method: str,
    stored: Unit,
    office: Office,
    watch: Watch,
) -> None:
    office.bring(stored, condition)
    before = watch()
    put = method == "PUT"
    response = stored.put(full(status=status)) if put else stored.patch({"status": status})
    row = row_of(action, Caller.API, condition)
    if condition.status in LOCKED:
        conflict(response, "status-locked", condition.status, "status")
    elif row is not None:
        assert response.status_code == 200, response.text
        expect_step(stored, row, before, watch())
        return
    elif condition.status is Status(status):
        assert response.status_code == 200, response.text
    else:
        conflict(response, "transition-not-allowed", condition.status, "status")
    assert watch() == before


@pytest.mark.parametrize("who", ["desk", "admin", "payments"])
@pytest.mark.parametrize("condition", MID_SALE)
def test_the_deposit_of_a_booking_is_confirmed_once_signed(
    condition: Condition,
    who: str,
    stored: Unit,
    office: Office,
    watch: Watch,
    request: pytest.FixtureRequest,
) -> None:
    caller: Desk = request.getfixturevalue(who)
    held = office.bring(stored, condition)
    assert held is not None
    before = watch()
    response = caller.act_on_booking(held.reference, "confirm-deposit")
    if condition is Condition.SIGNED:
        assert response.status_code == 200, response.text
        row = row_of(Action.CONFIRM_DEPOSIT, Caller.PAYMENT_SYSTEM, condition)
        assert row is not None
        expect_step(stored, row, before, watch())
        return
    if condition is Condition.HELD:
        conflict(response, "not-signed", "held")
    else:
        assert (response.status_code, response.json()["status"]) == (200, condition.status)
    assert watch() == before


@pytest.mark.parametrize("condition", MID_SALE)
def test_the_integration_api_confirms_no_deposit(
    condition: Condition, stored: Unit, office: Office, integration: Desk, watch: Watch
) -> None:
    held = office.bring(stored, condition)
    assert held is not None
    before = watch()
    problem(integration.act_on_booking(held.reference, "confirm-deposit"), 403)
    assert watch() == before


@pytest.mark.parametrize("condition", Condition)
def test_a_buyer_opens_what_the_table_lets_buyers_open(
    condition: Condition, stored: Unit, office: Office, public: httpx.Client, watch: Watch
) -> None:
    office.bring(stored, condition)
    before = watch()
    response = ask_for_hold(public, stored)
    row = row_of(Action.OPEN, Caller.BUYER, condition)
    if row is None:
        conflict(response, "not-available", condition.status)
        assert watch() == before
    else:
        assert response.status_code == 201, response.text
        expect_step(stored, row, before, watch())


@pytest.mark.parametrize("condition", MID_SALE)
def test_a_buyer_cancels_what_the_table_lets_buyers_cancel(
    condition: Condition, stored: Unit, office: Office, watch: Watch
) -> None:
    held = office.bring(stored, condition)
    assert held is not None
    before = watch()
    response = held.cancel()
    row = row_of(Action.CANCEL_HOLD, Caller.BUYER, condition)
    if row is None:
        conflict(response, "transition-not-allowed", condition.status)
        assert watch() == before
    else:
        assert response.status_code == 204, response.text
        expect_step(stored, row, before, watch())


@pytest.mark.parametrize("action", ["confirm-deposit", "cancel", "close-sale", "extend", "reissue-link"])
@pytest.mark.parametrize("condition", MID_SALE)
def test_a_token_of_a_buyer_opens_nothing_of_the_back_office(
    condition: Condition, action: str, stored: Unit, office: Office, public: httpx.Client, watch: Watch
) -> None:
    held = office.bring(stored, condition)
    assert held is not None
    before = watch()
    url = f"/v1/backoffice/bookings/{held.reference}/{action}"
    response = public.post(url, headers={"Authorization": f"Bearer {held.token}"})
    problem(response, 401)
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert watch() == before
