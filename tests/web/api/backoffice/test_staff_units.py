"""Units as staff read them: one, or page by page."""

from collections.abc import Callable

import pytest

from tests.support.backoffice import Desk, project_url, succeeded, unit_url
from tests.support.bodies import UNIT_FIELDS
from tests.support.client import Project, Unit, exact
from tests.support.problems import invalid, problem
from tests.support.sql import Sql
from tests.web.api.backoffice.conditions import Condition, Office, wait_for_the_end

STAFF_FIELDS = UNIT_FIELDS | {"archived", "reservedUntil", "bookingReference"}


def units_url(project: Project) -> str:
    return f"{project_url(project)}/units"


def listed(desk: Desk, project: Project, **query: str | int) -> dict[str, dict[str, object]]:
    """By code."""
    answer = succeeded(desk.http.get(units_url(project), params=query))
    assert set(answer) == {"units", "nextCursor"}
    return {unit["code"]: unit for unit in answer["units"]}


def test_a_unit_is_that_of_the_integration_api_and_what_staff_alone_know(stored: Unit, desk: Desk) -> None:
    found = succeeded(desk.http.get(unit_url(stored)))
    assert set(found) == STAFF_FIELDS
    assert {name: found[name] for name in UNIT_FIELDS} == exact(stored.get())
    assert (found["archived"], found["reservedUntil"], found["bookingReference"]) == (False, None, None)


@pytest.mark.parametrize("condition", Condition)
def test_a_unit_names_the_booking_that_has_it(
    condition: Condition, stored: Unit, office: Office, desk: Desk
) -> None:
    held = office.bring(stored, condition)
    found = succeeded(desk.http.get(unit_url(stored)))
    assert found["status"] == condition.status
    assert found["bookingReference"] == (held.reference if held else None)
    assert found["archived"] is (condition is Condition.ARCHIVED)
    assert (found["reservedUntil"] is not None) is (condition is Condition.RESERVED)
    assert listed(desk, stored.project) == {stored.code: found}


def test_an_action_answers_with_the_unit_that_is_read_afterwards(stored: Unit, desk: Desk) -> None:
    answer = desk.act(stored, "open")
    read = desk.http.get(unit_url(stored))
    assert exact(read) == exact(answer)
    assert read.headers["etag"] == answer.headers["etag"]


def test_a_hold_that_is_over_has_the_unit_no_longer(
    stored: Unit, desk: Desk, office: Office, sql: Sql
) -> None:
    desk.settle(stored.project, holdSeconds=0.05)
    office.held(stored)
    wait_for_the_end(sql, stored)
    found = succeeded(desk.http.get(unit_url(stored)))
    assert (found["status"], found["bookingReference"]) == ("available", None)


def test_an_unchanged_unit_is_not_sent_again(stored: Unit, desk: Desk) -> None:
    etag = desk.http.get(unit_url(stored)).headers["etag"]
    again = desk.http.get(unit_url(stored), headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    desk.did(stored, "archive")
    assert desk.http.get(unit_url(stored), headers={"If-None-Match": etag}).status_code == 200


def test_units_come_page_by_page_in_the_order_of_their_codes(
    new_unit: Callable[[str], Unit], project: Project, desk: Desk
) -> None:
    for code in ("B-1", "A-2", "A-1"):
        new_unit(code)
    first = succeeded(desk.http.get(units_url(project), params={"limit": 2}))
    assert [unit["code"] for unit in first["units"]] == ["A-1", "A-2"]
    rest = succeeded(desk.http.get(units_url(project), params={"limit": 2, "cursor": first["nextCursor"]}))
    assert [unit["code"] for unit in rest["units"]] == ["B-1"]
    assert rest["nextCursor"] is None


def test_only_units_of_a_status(new_unit: Callable[[str], Unit], project: Project, desk: Desk) -> None:
    held, _ = new_unit("A-1"), new_unit("A-2")
    reference = desk.did(held, "open")["bookingReference"]
    assert {
        code: unit["bookingReference"] for code, unit in listed(desk, project, status="held").items()
    } == {"A-1": reference}
    assert set(listed(desk, project, status="available")) == {"A-2"}
    assert listed(desk, project, status="sold") == {}


@pytest.mark.parametrize(("name", "value"), [("status", "gone"), ("limit", "0"), ("cursor", "!"), ("x", "1")])
def test_a_wrong_parameter_is_told(project: Project, desk: Desk, name: str, value: str) -> None:
    invalid(desk.http.get(units_url(project), params={name: value}), f"/query/{name}")


def test_what_is_not_there_is_not_found(project: Project, stored: Unit, desk: Desk) -> None:
    problem(desk.http.get(f"{units_url(project)}/A-999"), 404)
    problem(desk.http.get(f"{units_url(Project(project.id, 'nowhere', ''))}"), 404)
    problem(desk.http.get(f"{units_url(Project(project.id, 'nowhere', ''))}/A-101"), 404)


def test_a_key_that_is_limited_to_projects_sees_no_others(
    limited_desk: Desk, stored: Unit, new_project: Callable[[], Project]
) -> None:
    elsewhere = new_project()
    assert set(listed(limited_desk, stored.project)) == {stored.code}
    problem(limited_desk.http.get(units_url(elsewhere)), 404)
    problem(limited_desk.http.get(f"{units_url(elsewhere)}/A-101"), 404)


def test_neither_payment_systems_nor_the_integration_api_read_them(
    stored: Unit, payments: Desk, integration: Desk
) -> None:
    for desk in (payments, integration):
        problem(desk.http.get(units_url(stored.project)), 403)
        problem(desk.http.get(unit_url(stored)), 403)
