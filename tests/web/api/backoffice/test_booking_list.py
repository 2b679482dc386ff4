"""The list of bookings: the latest first, filtered, in pages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.backoffice import BOOKING_FIELDS, BOOKINGS, BUYER, Desk
from tests.support.client import Project, Unit
from tests.support.problems import invalid, problem
from tests.support.sql import Sql
from tests.web.api.backoffice.conditions import LOCK, Office, wait_for_the_end

STATUSES = ("open", "signed", "reserved", "sold", "lapsed", "cancelled", "refund-due", "refunded")

NewUnit = Callable[[str], Unit]


@contextmanager
def unswept(sql: Sql, unit: Unit) -> Iterator[None]:
    """While the unit is locked nobody writes the end of its hold."""
    sql.execute("begin")
    try:
        sql.rows(LOCK, unit.project.slug, unit.code)
        yield
    finally:
        sql.execute("rollback")


@pytest.fixture
def all_statuses(project: Project, new_unit: NewUnit, office: Office, desk: Desk, sql: Sql) -> dict[str, str]:
    """One booking of each status, by its status; lapsed is written as such."""
    units = {status: new_unit(f"U-{status}") for status in STATUSES}
    desk.settle(project, holdSeconds=0.02)
    made = {"lapsed": office.held(units["lapsed"])}
    desk.settle(project, holdSeconds=None)
    wait_for_the_end(sql, units["lapsed"])
    made["open"] = office.held(units["open"])
    made["signed"] = office.signed(units["signed"])
    made["reserved"] = office.reserved(units["reserved"])
    made["sold"] = office.sold(units["sold"])
    made["cancelled"] = office.held(units["cancelled"])
    assert made["cancelled"].cancel().status_code == 204
    for status in ("refund-due", "refunded"):
        made[status] = office.reserved(units[status])
        desk.did(units[status], "cancel-reservation")
    desk.did_to_booking(made["refunded"].reference, "mark-refunded")
    return {status: held.reference for status, held in made.items()}


def references(page: dict[str, Any]) -> list[str]:
    return [booking["reference"] for booking in page["bookings"]]


def test_every_status_finds_its_own(desk: Desk, project: Project, all_statuses: dict[str, str]) -> None:
    for status in STATUSES:
        page = desk.bookings(project=project.slug, status=status)
        assert references(page) == [all_statuses[status]]
        assert page["bookings"] == [desk.booking(all_statuses[status])]
        assert page["bookings"][0]["status"] == status


def test_the_latest_comes_first(desk: Desk, project: Project, all_statuses: dict[str, str]) -> None:
    found = references(desk.bookings(project=project.slug))
    assert found == list(all_statuses.values())[::-1]


def test_an_item_is_the_booking_itself(desk: Desk, stored: Unit, office: Office) -> None:
    held = office.signed(stored)
    (item,) = desk.bookings(project=stored.project.slug)["bookings"]
    assert set(item) == BOOKING_FIELDS
    assert item == desk.booking(held.reference)
    assert item["buyer"]["email"] == BUYER["buyerEmail"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 9])
def test_pages_follow_each_other_without_gap_or_repetition(
    desk: Desk, project: Project, all_statuses: dict[str, str], limit: int
) -> None:
    paged: list[str] = []
    query: dict[str, str | int] = {"project": project.slug, "limit": limit}
    while True:
        page = desk.bookings(**query)
        assert 1 <= len(page["bookings"]) <= limit
        paged += references(page)
        if page["nextCursor"] is None:
            break
        query["cursor"] = page["nextCursor"]
    assert paged == list(all_statuses.values())[::-1]


def test_a_page_stays_where_it_is_while_bookings_are_made(
    desk: Desk, stored: Unit, new_unit: NewUnit, office: Office
) -> None:
    first, second = office.held(stored), office.held(new_unit("A-102"))
    page = desk.bookings(project=stored.project.slug, limit=1)
    assert references(page) == [second.reference]
    office.held(new_unit("A-103"))
    rest = desk.bookings(project=stored.project.slug, limit=1, cursor=page["nextCursor"])
    assert references(rest) == [first.reference]
    assert rest["nextCursor"] is None


def test_the_bookings_of_one_unit_are_found(
    desk: Desk, stored: Unit, new_unit: NewUnit, office: Office
) -> None:
    office.held(new_unit("A-102"))
    first = office.held(stored)
    first.cancel()
    second = office.held(stored)
    query: dict[str, str | int] = {"project": stored.project.slug, "unitCode": stored.code}
    assert references(desk.bookings(**query)) == [second.reference, first.reference]
    assert references(desk.bookings(**query, status="cancelled")) == [first.reference]
    assert references(desk.bookings(project=stored.project.slug, unitCode="A-103")) == []


def test_a_code_is_looked_for_in_every_project(desk: Desk, office: Office, new_unit: NewUnit) -> None:
    unit = new_unit("Ω/only here")
    held = office.held(unit)
    (item,) = desk.bookings(unitCode="Ω/only here", limit=1)["bookings"]
    assert item["reference"] == held.reference


@pytest.mark.parametrize(("signed", "before"), [(False, "open"), (True, "signed")])
def test_a_hold_that_is_over_is_listed_as_lapsed_before_anybody_wrote_it(
    desk: Desk, stored: Unit, office: Office, sql: Sql, signed: bool, before: str
) -> None:
    desk.settle(stored.project, holdSeconds=1.5)
    held = office.signed(stored) if signed else office.held(stored)
    with unswept(sql, stored):
        wait_for_the_end(sql, stored)
        assert listed(desk, stored, "lapsed") == [held.reference]
        assert listed(desk, stored, before) == []
        assert desk.booking(held.reference)["status"] == "lapsed"
        assert desk.bookings(project=stored.project.slug)["bookings"] == [desk.booking(held.reference)]
        assert stored_status(sql, stored) == "held"
    assert listed(desk, stored, "lapsed") == [held.reference]


def test_a_reservation_that_is_over_is_listed_as_due_before_anybody_wrote_it(
    desk: Desk, stored: Unit, office: Office, sql: Sql
) -> None:
    desk.settle(stored.project, reservationDays=0.00002)
    held = office.reserved(stored)
    with unswept(sql, stored):
        wait_for_the_end(sql, stored)
        assert listed(desk, stored, "refund-due") == [held.reference]
        assert listed(desk, stored, "reserved") == []
        assert desk.booking(held.reference)["status"] == "refund-due"
        assert stored_status(sql, stored) == "reserved"


def listed(desk: Desk, unit: Unit, status: str) -> list[str]:
    return references(desk.bookings(project=unit.project.slug, status=status))


def stored_status(sql: Sql, unit: Unit) -> str:
    """As it is written, whatever readers see."""
    return str(
        sql.value(
            "select unit.status from unit join project on project.id = project_id where slug = $1",
            unit.project.slug,
        )
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("status", "held"),
        ("status", ""),
        ("status", "OPEN"),
        ("project", "Not_A_Slug"),
        ("project", ""),
        ("unitCode", "x" * 51),
        ("unitCode", ""),
        ("unitCode", "\x00"),
        ("limit", "0"),
        ("limit", "1001"),
        ("cursor", "x"),
        ("cursor", ""),
        ("reference", "x"),
    ],
)
def test_a_bad_query_is_refused(desk: Desk, name: str, value: str) -> None:
    invalid(desk.http.get(BOOKINGS, params={name: value}), f"/query/{name}")


@pytest.mark.parametrize("name", ["status", "project", "unitCode", "limit", "cursor"])
def test_a_query_that_is_not_utf8_is_refused(desk: Desk, name: str) -> None:
    invalid(desk.http.get(f"{BOOKINGS}?{name}=%FF"), f"/query/{name}")


def test_a_code_in_the_query_may_be_of_any_script(desk: Desk, new_unit: NewUnit, office: Office) -> None:
    held = office.held(new_unit("شقة-١"))
    found = desk.bookings(unitCode="شقة-١")
    assert held.reference in references(found)


def test_a_cursor_comes_from_a_page(desk: Desk) -> None:
    refusal = invalid(desk.http.get(BOOKINGS, params={"cursor": "x"}), "/query/cursor")
    assert refusal["errors"][0]["message"] == "This is not a cursor that a page has given."


def test_a_project_that_is_not_there_has_no_list(desk: Desk) -> None:
    answer = problem(desk.http.get(BOOKINGS, params={"project": "not-there-yet"}), 404)
    assert answer["type"] == "/problems/unknown-project"


def test_every_fault_is_told_at_once(desk: Desk) -> None:
    query = {"status": "x", "project": "X", "unitCode": "", "limit": "x", "cursor": "x", "more": "1"}
    invalid(desk.http.get(BOOKINGS, params=query), *(f"/query/{name}" for name in query))
    invalid(desk.http.get(f"{BOOKINGS}?status=open&status=sold"), "/query/status")


@pytest.mark.parametrize("reference", ["AAA-AAA-AAA", "x", "-", "0", "%20", "9" * 400])
def test_what_is_no_reference_names_no_booking(desk: Desk, reference: str) -> None:
    problem(desk.http.get(f"{BOOKINGS}/{reference}"), 404)
