"""Bookings in the back office: found, extended, cancelled, refunded, given a new link, rid of their buyer."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.support.backoffice import BOOKING_FIELDS, BOOKINGS, Desk
from tests.support.buying import BUYER, Hold
from tests.support.client import Project, Unit
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql
from tests.support.webhooks import Registrar
from tests.web.api.backoffice.conditions import BOOKED, Condition, Watch

STATUSES = ("open", "signed", "reserved", "sold", "lapsed", "cancelled", "refund-due", "refunded")
TABLES = "select quote_ident(tablename) as name from pg_tables where schemaname = 'public'"
FOUND_IN = "select count(*) from {table} as one where strpos(one::text, $1) > 0"

NewUnit = Callable[[str], Unit]


def references(page: dict[str, Any]) -> list[str]:
    return [booking["reference"] for booking in page["bookings"]]


# The list


@pytest.fixture
def all_statuses(new_unit: NewUnit, desk: Desk, sql: Sql) -> dict[str, str]:
    """One booking of each status, by its status, in the order of their making."""
    units = {status: new_unit(f"U-{status}") for status in STATUSES}
    made = {
        "open": desk.held(units["open"]),
        "signed": desk.signed(units["signed"]),
        "reserved": desk.reserved(units["reserved"]),
        "sold": desk.sold(units["sold"]),
        "lapsed": desk.held(units["lapsed"]).end_now(sql),
        "cancelled": desk.cancelled(units["cancelled"]),
        "refund-due": desk.refund_due(units["refund-due"]),
        "refunded": desk.refund_due(units["refunded"]),
    }
    desk.did_to_booking(made["refunded"].reference, "mark-refunded")
    return {status: held.reference for status, held in made.items()}


def test_bookings_are_listed_the_latest_first_page_by_page_and_by_status(
    desk: Desk, project: Project, all_statuses: dict[str, str]
) -> None:
    for status, reference in all_statuses.items():
        page = desk.bookings(project=project.slug, status=status)
        assert page == {"bookings": [desk.booking(reference)], "nextCursor": None}
        assert page["bookings"][0]["status"] == status
    latest_first = list(all_statuses.values())[::-1]
    for limit in (1, 3, 8, 9):
        pages = list(desk.pages(BOOKINGS, "bookings", project=project.slug, limit=limit))
        assert all(1 <= len(page) <= limit for page in pages)
        assert [booking["reference"] for page in pages for booking in page] == latest_first


def test_a_page_stays_where_it_is_while_bookings_are_made(
    desk: Desk, stored: Unit, new_unit: NewUnit
) -> None:
    first, second = desk.held(stored), desk.held(new_unit("A-102"))
    page = desk.bookings(project=stored.project.slug, limit=1)
    assert references(page) == [second.reference]
    desk.held(new_unit("A-103"))
    rest = desk.bookings(project=stored.project.slug, limit=1, cursor=page["nextCursor"])
    assert (references(rest), rest["nextCursor"]) == ([first.reference], None)


def test_the_bookings_of_a_unit_are_found_by_its_code(desk: Desk, new_unit: NewUnit) -> None:
    code = "شقة/١ Ω"
    unit = new_unit(code)
    desk.held(new_unit("A-102"))
    first = desk.cancelled(unit)
    second = desk.held(unit)
    query: dict[str, str | int] = {"project": unit.project.slug, "unitCode": code}
    assert references(desk.bookings(**query)) == [second.reference, first.reference]
    assert references(desk.bookings(**query, status="cancelled")) == [first.reference]
    assert references(desk.bookings(project=unit.project.slug, unitCode="A-103")) == []
    # In every project.
    assert references(desk.bookings(unitCode=code, limit=1)) == [second.reference]


def test_every_fault_of_a_query_is_told_at_once(desk: Desk) -> None:
    for query in (
        {"status": "held", "project": "", "unitCode": "\x00", "limit": "1001", "cursor": "", "code": "A-1"},
        {"status": "OPEN", "project": "X", "unitCode": "x" * 51, "limit": "0", "cursor": "x", "more": "1"},
    ):
        refusal = invalid(desk.http.get(BOOKINGS, params=query), *(f"/query/{name}" for name in query))
    assert "This is not a valid cursor." in str(refusal["errors"])
    names = ("status", "project", "unitCode", "limit", "cursor")
    not_text = "&".join(f"{name}=%FF" for name in names)
    invalid(desk.http.get(f"{BOOKINGS}?{not_text}"), *(f"/query/{name}" for name in names))
    invalid(desk.http.get(f"{BOOKINGS}?status=open&status=sold"), "/query/status")


# References


def test_a_reference_is_read_as_people_write_it_and_others_are_not_found(
    stored: Unit, desk: Desk, payments: Desk
) -> None:
    reference = desk.held(stored).reference
    assert desk.booking(reference.lower())["reference"] == reference
    for unknown in ("AAA-AAA-AAA", "x", "-", "%20", "%00", "9" * 400):
        problem(desk.http.get(f"{BOOKINGS}/{unknown}"), 404)
        problem(desk.act_on_booking(unknown, "extend"), 404)
        problem(payments.act_on_booking(unknown, "confirm-deposit"), 404)


def test_a_reference_that_is_not_text_is_told_with_the_other_faults(desk: Desk, unit: Unit) -> None:
    invalid(desk.act_on_booking("%FF", "extend", {"until": "soon"}), "/path/reference", "/until")
    invalid(desk.http.get(f"{BOOKINGS}/%FF", params={"x": 1}), "/path/reference", "/query/x")
    held = Hold(desk.buyer, unit, "%FF", "any")
    # The body of one whose token opens nothing is not read.
    invalid(held.try_to_sign(buyerPhone="call me"), "/path/reference")
    invalid(held.get(), "/path/reference")
    invalid(held.cancel(), "/path/reference")


# Cancelling, and closing the sale


def test_a_booking_is_cancelled_by_its_reference(stored: Unit, desk: Desk, feed: Feed) -> None:
    held = desk.signed(stored)
    assert desk.did_to_booking(held.reference, "cancel")["status"] == "cancelled"
    assert stored.read()["status"] == "available"
    again = desk.reserved(stored)
    assert desk.did_to_booking(again.reference, "cancel")["status"] == "refund-due"
    assert feed.types_of(stored)[-1] == "unit.released"
    desk.held(stored)
    for action in ("cancel", "extend", "close-sale"):
        conflict(desk.act_on_booking(held.reference, action), "transition-not-allowed", "held")


def test_a_sale_is_closed_by_the_reference_of_a_reserved_booking(
    stored: Unit, desk: Desk, feed: Feed
) -> None:
    held = desk.signed(stored)
    response = desk.act_on_booking(held.reference, "close-sale")
    refusal = conflict(response, "transition-not-allowed", "held")
    # To wait for the end of the hold would not help this booking.
    assert (refusal["detail"], "holdExpiresAt" in refusal) == ("The deposit is not confirmed yet.", False)
    assert "retry-after" not in response.headers
    desk.did(stored, "confirm-deposit")
    invalid(desk.act_on_booking(held.reference, "close-sale", BUYER), *(f"/{name}" for name in BUYER))
    answer = desk.did_to_booking(held.reference, "close-sale")
    assert (answer["status"], answer["closedAt"]) == ("sold", stored.read()["updatedAt"])
    assert feed.of(stored)[-1]["data"]["booking"] == {"reference": held.reference}
    for action in ("close-sale", "cancel", "extend", "mark-refunded"):
        conflict(desk.act_on_booking(held.reference, action), "transition-not-allowed", "sold")


@pytest.mark.parametrize(
    "action", ["confirm-deposit", "mark-refunded", "reissue-link", "cancel", "erase-buyer"]
)
def test_actions_on_bookings_take_no_fields(stored: Unit, desk: Desk, action: str) -> None:
    held = desk.signed(stored)
    invalid(desk.act_on_booking(held.reference, action, {"amount": 1}), "/amount")
    assert desk.booking(held.reference)["status"] == "signed"
    held.read()


# Extending


def wire_time(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


@pytest.mark.parametrize("condition", [Condition.HELD, Condition.RESERVED])
def test_an_end_moves_by_one_period_or_to_a_time_and_never_closer(
    stored: Unit, desk: Desk, watch: Watch, condition: Condition
) -> None:
    held = desk.book(stored, condition)
    reserved = condition is Condition.RESERVED
    name = "reservedUntil" if reserved else "holdExpiresAt"
    period = timedelta(days=14) if reserved else timedelta(seconds=300)
    etag, told, noted = watch()
    before = desk.booking(held.reference)[name]
    later = [wire_time(datetime.fromisoformat(before) + times * period) for times in (1, 2)]
    assert desk.did(stored, "extend")[name] == later[0]
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["bookingReference"]) == ("extend", held.reference)
    assert (entry["before"], entry["after"]) == ({name: before}, {name: later[0]})
    assert desk.did_to_booking(held.reference, "extend", {})[name] == later[1]
    day = (datetime.now(UTC) + timedelta(days=60)).date()
    end = f"{day}T09:00:00.123Z"
    first = desk.did(stored, "extend", {"until": f"{day}T12:00:00.123999+03:00"})
    assert first[name] == desk.booking(held.reference)[name] == held.read()[name] == end
    after = watch()
    assert after[0] != etag
    assert after[1:] == (told, noted + 3)
    # The same again changes nothing, as after an answer that got lost.
    assert desk.did(stored, "extend", {"until": end}) == first
    closer = wire_time(datetime.fromisoformat(end) - timedelta(milliseconds=1))
    for refused in (closer, "2999-01-01T00:00:00Z"):
        invalid(desk.act(stored, "extend", {"until": refused}), "/until")
        invalid(desk.act_on_booking(held.reference, "extend", {"until": refused}), "/until")
    assert watch() == after


def test_what_is_no_time_is_refused(stored: Unit, desk: Desk) -> None:
    reference = desk.held(stored).reference
    etag = stored.etag
    no_times: list[object] = [
        None, 1_800_000_000, True, "", "tomorrow", "2030-01-01", "2030-13-01T00:00:00Z",
        "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "2030-01-01T00:00:00Z\u0000", [], {},
    ]  # fmt: skip
    for until in no_times:
        invalid(desk.act(stored, "extend", {"until": until}), "/until")
    invalid(desk.act_on_booking(reference, "extend", {"until": "soon", "days": 3}), "/until", "/days")
    invalid(desk.act_on_booking(reference, "extend", ["until"]), "")
    assert stored.etag == etag


def test_a_project_of_its_own_periods_extends_by_those_within_reason(stored: Unit, desk: Desk) -> None:
    desk.settle(stored.project, holdSeconds=1000, reservationDays=3650)
    before = datetime.fromisoformat(desk.booking(desk.signed(stored).reference)["holdExpiresAt"])
    extended = datetime.fromisoformat(desk.did(stored, "extend")["holdExpiresAt"])
    assert extended - before == timedelta(seconds=1000)
    desk.did(stored, "confirm-deposit")
    # What cannot be asked for at once cannot be had bit by bit.
    invalid(desk.act(stored, "extend"), "/until")


# Refunds


def test_a_deposit_that_is_due_back_is_marked_as_refunded_once(
    stored: Unit, desk: Desk, watch: Watch
) -> None:
    due = desk.reserved(stored)
    desk.did(stored, "cancel-reservation")
    other = desk.reserved(stored)
    etag, told, noted = watch()
    answers = [desk.did_to_booking(due.reference, "mark-refunded") for _ in range(2)]
    assert {answer["status"] for answer in answers} == {"refunded"}
    assert due.read()["status"] == "refunded"
    assert watch() == (etag, told, noted + 1)
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["bookingReference"]) == ("mark-refunded", due.reference)
    changes = ({"bookingStatus": "refund-due"}, {"bookingStatus": "refunded"})
    assert (entry["before"], entry["after"]) == changes
    assert desk.did_to_booking(due.reference, "confirm-deposit")["status"] == "refunded"
    conflict(desk.act_on_booking(other.reference, "mark-refunded"), "transition-not-allowed", "reserved")
    assert desk.booking(other.reference)["status"] == "reserved"
    assert watch() == (etag, told, noted + 1)


# New links


def reissued(desk: Desk, held: Hold) -> Hold:
    answer = desk.did_to_booking(held.reference, "reissue-link")
    assert set(answer) == BOOKING_FIELDS | {"token", "url"}
    assert answer["url"].endswith(f"/p/{answer['projectSlug']}/bookings/{held.reference}/{answer['token']}")
    assert answer["token"] != held.token
    return replace(held, token=answer["token"])


@pytest.mark.parametrize("condition", BOOKED)
def test_a_new_link_opens_the_booking_and_the_old_one_nothing(
    condition: Condition, stored: Unit, desk: Desk, watch: Watch
) -> None:
    held = desk.book(stored, condition)
    etag, told, noted = watch()
    anew = reissued(desk, held)
    for response in (held.get(), held.try_to_sign(), held.cancel()):
        problem(response, 404)
    assert anew.read() == desk.booking(held.reference)
    assert watch() == (etag, told, noted + 1)
    page = desk.history_page(stored)
    entry = page["entries"][0]
    assert (entry["action"], entry["bookingReference"]) == ("reissue-link", held.reference)
    assert (entry["before"], entry["after"]) == ({}, {})
    assert anew.token not in str(page)


def test_the_buyer_goes_on_with_the_new_link_to_the_end_and_after(stored: Unit, desk: Desk) -> None:
    anew = reissued(desk, desk.held(stored))
    anew.sign()
    last = reissued(desk, anew)
    problem(anew.cancel(), 404)
    assert last.cancel().status_code == 204
    assert stored.read()["status"] == "available"
    assert reissued(desk, last).read()["status"] == "cancelled"


# Erasing the buyer


@pytest.fixture
def details() -> dict[str, str]:
    """Somebody whom no other test knows."""
    mark = uuid4().hex
    return {
        "buyerName": f"Nora {mark} Al-Harbi",
        "buyerEmail": f"{mark}@example.com",
        "buyerPhone": f"+966 {int(mark[:9], 16):012d}",
    }


@pytest.fixture
def sold(details: dict[str, str], stored: Unit, desk: Desk) -> Hold:
    held = desk.held(stored)
    held.sign(**details)
    desk.did_to_booking(held.reference, "confirm-deposit")
    desk.did_to_booking(held.reference, "close-sale")
    return held


def traces(sql: Sql, details: dict[str, str]) -> Iterator[str]:
    """The tables in which a row holds a detail of the buyer, as text or as bytes."""
    for row in sql.rows(TABLES):
        statement = FOUND_IN.format(table=row["name"])
        for text in details.values():
            if sql.value(statement, text) or sql.value(statement, text.encode().hex()):
                yield row["name"]


def test_the_buyer_is_erased_once_and_the_sale_stays(
    stored: Unit, sold: Hold, desk: Desk, admin: Desk, details: dict[str, str], watch: Watch
) -> None:
    before = desk.booking(sold.reference)
    assert list(before["buyer"].values()) == list(details.values())
    etag, told, noted = watch()
    erased, again = (desk.did_to_booking(sold.reference, "erase-buyer") for _ in range(2))
    assert erased["buyerErasedAt"] is not None
    assert erased == before | {"buyer": None, "buyerErasedAt": erased["buyerErasedAt"]}
    assert erased == again == desk.booking(sold.reference)
    assert watch() == (etag, told, noted + 1)
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["bookingReference"]) == ("erase-buyer", sold.reference)
    assert (entry["before"], entry["after"]) == ({}, {})
    # The link still opens the booking, without the person.
    assert sold.read() == erased
    conflict(sold.try_to_sign(**details), "transition-not-allowed", "sold")
    admin.did(stored, "revoke-sale")
    assert admin.booking(sold.reference)["status"] == "refund-due"


def test_no_trace_of_the_person_is_left_in_any_table(
    new_unit: NewUnit, sold: Hold, desk: Desk, registrar: Registrar, details: dict[str, str], sql: Sql
) -> None:
    walked_in = new_unit("A-102")
    registrar.add(projects=[walked_in.project.slug])
    reference = desk.did(walked_in, "close-sale", details)["bookingReference"]
    assert list(traces(sql, details)) == ["booking"] * 3
    for erased in (sold.reference, reference):
        desk.did_to_booking(erased, "erase-buyer")
    assert list(traces(sql, details)) == []


def test_who_is_still_buying_or_owed_money_is_not_erased(stored: Unit, desk: Desk) -> None:
    held = desk.reserved(stored)
    refusal = conflict(
        desk.act_on_booking(held.reference, "erase-buyer"), "transition-not-allowed", "reserved"
    )
    assert "must end or be sold" in refusal["detail"]
    desk.did_to_booking(held.reference, "cancel")
    refusal = conflict(
        desk.act_on_booking(held.reference, "erase-buyer"), "transition-not-allowed", "available"
    )
    assert "must be refunded" in refusal["detail"]
    assert desk.booking(held.reference)["buyer"] is not None
    desk.did_to_booking(held.reference, "mark-refunded")
    assert desk.did_to_booking(held.reference, "erase-buyer")["status"] == "refunded"


def test_late_money_of_an_erased_buyer_is_due_back(stored: Unit, desk: Desk) -> None:
    held = desk.cancelled(stored)
    desk.did_to_booking(held.reference, "erase-buyer")
    late = desk.did_to_booking(held.reference, "confirm-deposit")
    assert (late["status"], late["buyer"]) == ("refund-due", None)
    assert stored.read()["status"] == "available"
