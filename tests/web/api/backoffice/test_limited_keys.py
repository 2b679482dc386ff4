"""Keys that are limited to projects see and do nothing elsewhere."""

from collections.abc import Callable

import pytest

from holdfast.domain.transitions import Action
from tests.support.backoffice import BOOKINGS, PROJECTS, Desk, project_url, unit_url
from tests.support.buying import BUYER, Hold
from tests.support.client import Project, Unit
from tests.support.feed import Feed
from tests.support.problems import invalid, problem

BOOKING_ACTIONS = (
    "confirm-deposit", "cancel", "close-sale", "extend", "mark-refunded", "reissue-link", "erase-buyer",
)  # fmt: skip


@pytest.fixture
def booked(elsewhere: Unit, desk: Desk) -> Hold:
    return desk.signed(elsewhere)


def test_their_own_project_is_open(limited_desk: Desk, stored: Unit, desk: Desk) -> None:
    held = desk.signed(stored)
    assert limited_desk.did_to_booking(held.reference, "confirm-deposit")["status"] == "reserved"
    assert limited_desk.did(stored, "close-sale")["status"] == "sold"
    assert limited_desk.did_to_booking(held.reference, "erase-buyer")["buyer"] is None
    assert limited_desk.history(stored)[0]["action"] == "erase-buyer"
    assert limited_desk.http.get(f"{project_url(stored.project)}/units").status_code == 200
    assert limited_desk.settle(stored.project, name="Ours")["name"] == "Ours"


def test_another_project_is_not_there(limited_desk: Desk, elsewhere: Unit) -> None:
    url, before = project_url(elsewhere.project), elsewhere.get()
    for answer in (
        limited_desk.http.get(url),
        limited_desk.http.patch(url, json={"name": "Ours now"}),
        limited_desk.http.get(f"{url}/layout"),
        limited_desk.http.put(f"{url}/layout", json={"units": []}),
        limited_desk.http.get(f"{url}/units"),
        limited_desk.http.get(unit_url(elsewhere)),
        limited_desk.http.get(f"{unit_url(elsewhere)}/history"),
    ):
        problem(answer, 404)
    after = elsewhere.get()
    assert (after.text, after.headers["etag"]) == (before.text, before.headers["etag"])
    # A fault is told before the project is missed.
    for field, value in (("name", " x"), ("holdSeconds", 0)):
        invalid(limited_desk.http.patch(url, json={field: value}), f"/{field}")


def test_a_project_can_be_neither_added_nor_found_by_trying(limited_desk: Desk, elsewhere: Unit) -> None:
    told = []
    for slug in (elsewhere.project.slug, "not-there-yet"):
        added = limited_desk.http.post(PROJECTS, json={"slug": slug, "name": "x"})
        listed = limited_desk.http.get(BOOKINGS, params={"project": slug})
        refusals = [problem(answer, 404) for answer in (added, listed)]
        told.append([(refusal["type"], refusal["detail"].replace(slug, "SLUG")) for refusal in refusals])
    assert told[0] == told[1]


def test_nothing_of_another_project_is_touched(
    limited_desk: Desk, limited_admin: Desk, elsewhere: Unit, booked: Hold, desk: Desk, feed: Feed
) -> None:
    etag, noted, told = elsewhere.etag, desk.history(elsewhere), feed.types_of(elsewhere)
    for action in Action:
        caller = limited_admin if action is Action.REVOKE_SALE else limited_desk
        problem(caller.act(elsewhere, action, BUYER if action is Action.CLOSE_SALE else None), 404)
    for name in BOOKING_ACTIONS:
        problem(limited_desk.act_on_booking(booked.reference, name), 404)
    assert (elsewhere.etag, desk.history(elsewhere)) == (etag, noted)
    assert feed.types_of(elsewhere) == told
    booked.read()


def test_a_booking_of_another_project_looks_like_an_unknown_one(limited_desk: Desk, booked: Hold) -> None:
    answers = []
    typed = booked.reference.replace("-", "").lower()
    for reference in (booked.reference, typed, "AAA-AAA-AAA"):
        answer = problem(limited_desk.http.get(f"{BOOKINGS}/{reference}"), 404)
        answer.pop("requestId")
        answers.append({**answer, "detail": answer["detail"].replace(reference, "REFERENCE")})
    assert answers[0] == answers[1] == answers[2]


def test_a_payment_system_can_be_limited_too(
    desk_with: Callable[..., Desk], stored: Unit, desk: Desk, booked: Hold
) -> None:
    own = desk.signed(stored)
    limited = desk_with("payments", projects=[stored.project.slug])
    assert limited.did_to_booking(own.reference, "confirm-deposit")["status"] == "reserved"
    problem(limited.act_on_booking(booked.reference, "confirm-deposit"), 404)


def test_the_lists_are_filtered(
    limited_desk: Desk,
    desk_with: Callable[..., Desk],
    project: Project,
    stored: Unit,
    desk: Desk,
    booked: Hold,
    elsewhere: Unit,
) -> None:
    own = desk.held(stored)
    projects = limited_desk.http.get(PROJECTS).json()
    assert [item["slug"] for item in projects["projects"]] == [project.slug]
    assert projects["nextCursor"] is None
    for query in ({}, {"unitCode": elsewhere.code}):
        assert [item["reference"] for item in limited_desk.bookings(**query)["bookings"]] == [own.reference]
    assert limited_desk.bookings(status="signed")["bookings"] == []
    both = desk_with("backoffice", projects=[project.slug, elsewhere.project.slug])
    found = [item["reference"] for item in both.bookings()["bookings"]]
    assert found == [own.reference, booked.reference]
