"""After a lapse the same visitor waits, so that others have their chance."""

from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest

from tests.support import states
from tests.support.buying import Hold
from tests.support.client import integration_client
from tests.support.installation import Installation, installed
from tests.web.api.storefront.limits import BEHIND_A_PROXY, coming_from, new_cookie, too_many

KIND = "held-too-recently"
SHORT_WAIT_SECONDS = 1.5


@pytest.fixture(scope="module")
def patient(module_postgres_url: str) -> Iterator[Installation]:
    """With the wait that is usual."""
    with installed(module_postgres_url, BEHIND_A_PROXY) as running:
        yield running


@pytest.fixture(scope="module")
def brisk(module_postgres_url: str) -> Iterator[Installation]:
    settings = {**BEHIND_A_PROXY, "HOLDFAST_REHOLD_SECONDS": str(SHORT_WAIT_SECONDS)}
    with installed(module_postgres_url, settings) as running:
        yield running


@pytest.fixture(scope="module")
def street(patient: Installation) -> Iterator[httpx.Client]:
    with integration_client(patient.address, None) as client:
        yield client


def hold_and_let_lapse(installation: Installation, http: httpx.Client, cookie: str | None = None) -> Hold:
    (unit,) = installation.units(1, hold_seconds=0.02)
    held = coming_from(http, cookie=cookie).hold(unit)
    states.wait_until(installation.sql, held.ends)
    states.settle(installation.sql, unit, holdSeconds=300)
    return held


def test_the_same_cookie_waits(patient: Installation, street: httpx.Client) -> None:
    cookie = new_cookie()
    lapsed = hold_and_let_lapse(patient, street, cookie)
    assert "60 s" in too_many(coming_from(street, cookie=cookie).ask(lapsed.unit), KIND, 60)
    assert lapsed.unit.read()["status"] == "available"


def test_the_wait_is_not_shortened_by_holds_that_others_cancel(
    patient: Installation, street: httpx.Client
) -> None:
    cookie = new_cookie()
    lapsed = hold_and_let_lapse(patient, street, cookie)
    for _ in range(25):
        assert coming_from(street).hold(lapsed.unit).cancel().status_code == 204
    too_many(coming_from(street, cookie=cookie).ask(lapsed.unit), KIND, 60)


def test_the_same_token_waits(patient: Installation, street: httpx.Client) -> None:
    lapsed = hold_and_let_lapse(patient, street)
    too_many(coming_from(street).ask(lapsed.unit, token=lapsed.token), KIND, 60)


def test_a_token_waits_under_another_cookie_too(patient: Installation, street: httpx.Client) -> None:
    lapsed = hold_and_let_lapse(patient, street, new_cookie())
    too_many(coming_from(street, cookie=new_cookie()).ask(lapsed.unit, token=lapsed.token), KIND, 60)


def test_another_visitor_may_hold_at_once(patient: Installation, street: httpx.Client) -> None:
    lapsed = hold_and_let_lapse(patient, street, new_cookie())
    assert coming_from(street, cookie=new_cookie()).ask(lapsed.unit).status_code == 201


def test_whoever_shows_neither_is_another_visitor(patient: Installation, street: httpx.Client) -> None:
    lapsed = hold_and_let_lapse(patient, street, new_cookie())
    assert coming_from(street).ask(lapsed.unit).status_code == 201


def test_the_wait_is_for_the_same_unit_alone(patient: Installation, street: httpx.Client) -> None:
    cookie = new_cookie()
    hold_and_let_lapse(patient, street, cookie)
    (other,) = patient.units(1)
    assert coming_from(street, cookie=cookie).ask(other).status_code == 201


def test_whoever_cancelled_may_hold_again_at_once(patient: Installation, street: httpx.Client) -> None:
    (unit,) = patient.units(1)
    buyer = coming_from(street, cookie=new_cookie())
    held = buyer.hold(unit)
    held.cancel()
    assert buyer.ask(unit, token=held.token).status_code == 201


def test_the_hold_of_another_in_between_changes_nothing(patient: Installation, street: httpx.Client) -> None:
    cookie = new_cookie()
    lapsed = hold_and_let_lapse(patient, street, cookie)
    coming_from(street).hold(lapsed.unit).cancel()
    too_many(coming_from(street, cookie=cookie).ask(lapsed.unit), KIND, 60)


def test_after_the_wait_the_unit_may_be_held_again(brisk: Installation) -> None:
    cookie = new_cookie()
    with integration_client(brisk.address, None) as http:
        lapsed = hold_and_let_lapse(brisk, http, cookie)
        buyer = coming_from(http, cookie=cookie)
        too_many(buyer.ask(lapsed.unit), KIND, 2)
        states.wait_until(brisk.sql, lapsed.ends + timedelta(seconds=SHORT_WAIT_SECONDS))
        assert buyer.ask(lapsed.unit).status_code == 201
