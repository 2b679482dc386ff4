"""Staff whose key is limited to projects see and do nothing elsewhere."""

from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from holdfast.domain.transitions import Action
from tests.support.app import InProcessApp
from tests.support.backoffice import BOOKINGS, BUYER, PROJECTS, Desk, Held, project_url, succeeded, unit_url
from tests.support.bodies import full
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import Feed
from tests.support.keys import Keys
from tests.support.problems import invalid, problem
from tests.web.api.backoffice.conditions import Condition, Office

BOOKING_ACTIONS = (
    "confirm-deposit", "cancel", "close-sale", "extend", "mark-refunded", "reissue-link", "erase-buyer",
)  # fmt: skip
UNIT_ACTIONS = [str(action) for action in Action if action is not Action.REVOKE_SALE]


@pytest.fixture
def elsewhere(http: httpx.Client, new_project: Callable[[], Project]) -> Unit:
    """A unit of a project that the key is not for."""
    unit = Unit(http, new_project(), "A-101")
    unit.create(full())
    return unit


@pytest.fixture
def booked(elsewhere: Unit, office: Office) -> Held:
    return office.signed(elsewhere)


@pytest.fixture
def limited_admin(server: InProcessApp, keys: Keys, project: Project) -> Iterator[Desk]:
    key = keys.issue(scopes=["admin"], projects=[project.slug])
    with integration_client(server.address, key.text) as http:
        yield Desk(http)


def test_their_own_project_is_open(limited_desk: Desk, stored: Unit, office: Office) -> None:
    held = office.signed(stored)
    assert limited_desk.did_to_booking(held.reference, "confirm-deposit")["status"] == "reserved"
    assert limited_desk.did(stored, "close-sale")["status"] == "sold"
    assert limited_desk.history(stored)[0]["action"] == "close-sale"
    assert limited_desk.settle(stored.project, name="Ours")["name"] == "Ours"


@pytest.mark.parametrize(("field", "value"), [("name", " x"), ("holdSeconds", 0)])
def test_a_fault_is_told_before_another_project_is_missed(
    limited_desk: Desk, elsewhere: Unit, field: str, value: object
) -> None:
    answer = limited_desk.http.patch(project_url(elsewhere.project), json={field: value})
    invalid(answer, f"/{field}")


def test_another_project_is_not_there(limited_desk: Desk, elsewhere: Unit) -> None:
    url, before = project_url(elsewhere.project), elsewhere.get()
    answers = [
        limited_desk.http.get(url),
        limited_desk.http.patch(url, json={"name": "Ours now"}),
        limited_desk.http.get(f"{url}/layout"),
        limited_desk.http.put(f"{url}/layout", json={"units": []}),
        limited_desk.http.get(f"{unit_url(elsewhere)}/history"),
    ]
    for answer in answers:
        problem(answer, 404)
    after = elsewhere.get()
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])


def test_a_project_can_be_neither_added_nor_found_by_trying(limited_desk: Desk, elsewhere: Unit) -> None:
    answers = [
        problem(limited_desk.http.post(PROJECTS, json={"slug": slug, "name": "x"}), 404)
        for slug in (elsewhere.project.slug, "not-there-yet")
    ]
    assert len({answer["type"] for answer in answers}) == 1


@pytest.mark.parametrize("action", UNIT_ACTIONS)
@pytest.mark.parametrize("condition", [Condition.AVAILABLE, Condition.SIGNED])
def test_no_unit_of_another_project_is_touched(
    action: str, condition: Condition, limited_desk: Desk, elsewhere: Unit, office: Office, desk: Desk
) -> None:
    office.bring(elsewhere, condition)
    etag, noted = elsewhere.etag, desk.history(elsewhere)
    problem(limited_desk.act(elsewhere, action, BUYER if action == "close-sale" else None), 404)
    assert (elsewhere.etag, desk.history(elsewhere)) == (etag, noted)


def test_an_admin_can_be_limited_too(limited_admin: Desk, elsewhere: Unit, office: Office) -> None:
    office.sold(elsewhere)
    problem(limited_admin.act(elsewhere, "revoke-sale"), 404)
    assert elsewhere.read()["status"] == "sold"


@pytest.mark.parametrize("action", BOOKING_ACTIONS)
def test_no_booking_of_another_project_is_touched(
    action: str, limited_desk: Desk, elsewhere: Unit, booked: Held, desk: Desk, feed: Feed
) -> None:
    etag, noted, told = elsewhere.etag, desk.history(elsewhere), feed.types_of(elsewhere)
    problem(limited_desk.act_on_booking(booked.reference, action), 404)
    assert (elsewhere.etag, desk.history(elsewhere)) == (etag, noted)
    assert feed.types_of(elsewhere) == told
    assert booked.read().status_code == 200


def test_a_booking_of_another_project_looks_like_an_unknown_one(limited_desk: Desk, booked: Held) -> None:
    answers = []
    typed = booked.reference.replace("-", "").lower()
    for reference in (booked.reference, typed, "AAA-AAA-AAA"):
        answer = problem(limited_desk.http.get(f"{BOOKINGS}/{reference}"), 404)
        answer.pop("requestId")
        answers.append({**answer, "detail": answer["detail"].replace(reference, "REFERENCE")})
    assert answers[0] == answers[1] == answers[2]


def test_a_payment_system_can_be_limited_too(
    server: InProcessApp, keys: Keys, project: Project, stored: Unit, office: Office, booked: Held
) -> None:
    own = office.signed(stored)
    key = keys.issue(scopes=["payments"], projects=[project.slug])
    with integration_client(server.address, key.text) as http:
        assert Desk(http).did_to_booking(own.reference, "confirm-deposit")["status"] == "reserved"
        problem(Desk(http).act_on_booking(booked.reference, "confirm-deposit"), 404)


def test_the_lists_are_filtered(
    limited_desk: Desk, project: Project, stored: Unit, office: Office, elsewhere: Unit, booked: Held
) -> None:
    own = office.held(stored)
    projects: dict[str, Any] = limited_desk.http.get(PROJECTS).json()
    assert [item["slug"] for item in projects["projects"]] == [project.slug]
    assert projects["nextCursor"] is None
    whole = limited_desk.bookings()
    assert [item["reference"] for item in whole["bookings"]] == [own.reference]
    by_code = limited_desk.bookings(unitCode=elsewhere.code)["bookings"]
    assert [item["projectSlug"] for item in by_code] == [project.slug]
    assert limited_desk.bookings(status="signed")["bookings"] == []


def test_bookings_are_not_listed_of_a_project_that_is_not_there(limited_desk: Desk, booked: Held) -> None:
    elsewhere = "not-there-yet"
    answers = []
    for slug in (elsewhere, succeeded(booked.read())["projectSlug"]):
        answer = problem(limited_desk.http.get(BOOKINGS, params={"project": slug}), 404)
        assert answer["type"] == "/problems/unknown-project"
        answers.append(answer["detail"].replace(slug, "SLUG"))
    assert answers[0] == answers[1]


def test_several_projects_may_be_named(
    server: InProcessApp, keys: Keys, stored: Unit, office: Office, elsewhere: Unit, booked: Held
) -> None:
    own = office.held(stored)
    key = keys.issue(scopes=["backoffice"], projects=[stored.project.slug, elsewhere.project.slug])
    with integration_client(server.address, key.text) as http:
        page = Desk(http).bookings()
    assert [item["reference"] for item in page["bookings"]] == [own.reference, booked.reference]
