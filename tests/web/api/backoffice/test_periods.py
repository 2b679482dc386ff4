"""Holds and reservations last as long as their project says."""

from datetime import datetime
from decimal import Decimal

import pytest

from tests.support.backoffice import Desk, hold
from tests.support.client import Unit, integration_client
from tests.support.server import RunningServer
from tests.web.api.backoffice.conditions import Office


def seconds_between(first: str, last: str) -> Decimal:
    difference = datetime.fromisoformat(last) - datetime.fromisoformat(first)
    return Decimal(round(difference.total_seconds() * 1000)) / 1000


@pytest.mark.parametrize("seconds", [Decimal("30.001"), Decimal("1234.567"), 604_800])
def test_a_hold_is_as_long_as_the_project_says(
    desk: Desk, stored: Unit, office: Office, seconds: Decimal
) -> None:
    desk.settle(stored.project, holdSeconds=seconds)
    office.held(stored)
    opened = desk.last_entry(stored)
    assert seconds_between(opened["at"], opened["after"]["holdExpiresAt"]) == seconds


@pytest.mark.parametrize("days", [Decimal("0.001"), Decimal("2.5"), 3650])
def test_a_reservation_is_as_long_as_the_project_says(
    desk: Desk, stored: Unit, office: Office, days: Decimal
) -> None:
    desk.settle(stored.project, reservationDays=days)
    booking = desk.booking(office.reserved(stored).reference)
    lasts = seconds_between(booking["depositConfirmedAt"], booking["reservedUntil"])
    assert lasts == days * 86_400


def test_what_staff_open_lasts_as_long(desk: Desk, stored: Unit) -> None:
    desk.settle(stored.project, holdSeconds=77)
    unit = desk.did(stored, "open")
    assert seconds_between(unit["updatedAt"], unit["holdExpiresAt"]) == 77


def test_without_a_period_of_its_own_the_server_decides(desk: Desk, stored: Unit, office: Office) -> None:
    desk.settle(stored.project, holdSeconds=77, reservationDays=3)
    desk.settle(stored.project, holdSeconds=None, reservationDays=None)
    unit = desk.did(stored, "open")
    assert seconds_between(unit["updatedAt"], unit["holdExpiresAt"]) == 300
    desk.did(stored, "cancel-hold")
    booking = desk.booking(office.reserved(stored).reference)
    assert seconds_between(booking["depositConfirmedAt"], booking["reservedUntil"]) == 14 * 86_400


def test_a_hold_that_runs_keeps_its_end(desk: Desk, stored: Unit, office: Office) -> None:
    held = office.held(stored)
    end = desk.booking(held.reference)["holdExpiresAt"]
    desk.settle(stored.project, holdSeconds=5)
    assert desk.booking(held.reference)["holdExpiresAt"] == end


def test_every_process_knows_a_new_period_at_once(
    desk: Desk, stored: Unit, two_processes: RunningServer
) -> None:
    """The first hold makes the project known there; the second must not go by what was known."""
    with integration_client(two_processes.address, None) as http:
        for seconds in (100, 200, 300, 400):
            desk.settle(stored.project, holdSeconds=seconds)
            hold(http, stored)
            opened = desk.last_entry(stored)
            assert seconds_between(opened["at"], opened["after"]["holdExpiresAt"]) == seconds
            desk.did(stored, "cancel-hold")
