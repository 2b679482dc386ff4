"""A buyer asks to be forgotten: the person is gone from everywhere, the facts of the sale stay."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tests.support.backoffice import Desk, Held, hold, succeeded
from tests.support.bodies import full
from tests.support.client import Project, Unit
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql
from tests.support.webhooks import Registrar
from tests.web.api.backoffice.conditions import Condition, Office

TABLES = "select quote_ident(tablename) as name from pg_tables where schemaname = 'public'"
FOUND_IN = "select count(*) from {table} as one where strpos(one::text, $1) > 0"


@pytest.fixture
def buyer() -> dict[str, str]:
    """Somebody whom no other test knows."""
    mark = uuid4().hex
    return {
        "buyerName": f"Nora {mark} Al-Harbi",
        "buyerEmail": f"{mark}@example.com",
        "buyerPhone": f"+966 {int(mark[:12], 16):015d}",
    }


def sold_to(buyer: dict[str, str], unit: Unit, office: Office, desk: Desk) -> Held:
    held = hold(office.public, unit)
    succeeded(held.sign(buyer))
    desk.did_to_booking(held.reference, "confirm-deposit")
    desk.did_to_booking(held.reference, "close-sale")
    return held


def traces(sql: Sql, text: str) -> Iterator[str]:
    """The tables in which a row holds the text, as text or as bytes."""
    for row in sql.rows(TABLES):
        statement = FOUND_IN.format(table=row["name"])
        if sql.value(statement, text) or sql.value(statement, text.encode().hex()):
            yield row["name"]


def test_the_buyer_is_erased_and_the_sale_stays(
    stored: Unit, office: Office, desk: Desk, buyer: dict[str, str]
) -> None:
    reference = sold_to(buyer, stored, office, desk).reference
    before = desk.booking(reference)
    assert before["buyer"] == {
        "name": buyer["buyerName"],
        "email": buyer["buyerEmail"],
        "phone": buyer["buyerPhone"],
    }
    erased = desk.did_to_booking(reference, "erase-buyer")
    assert erased["buyer"] is None
    assert erased["buyerErasedAt"] is not None
    differing = {name for name in before if before[name] != erased[name]}
    assert differing == {"buyer", "buyerErasedAt"}
    assert desk.booking(reference) == erased


def test_no_trace_of_the_person_is_left_in_any_table(
    stored: Unit, office: Office, desk: Desk, registrar: Registrar, buyer: dict[str, str], sql: Sql
) -> None:
    registrar.add(projects=[stored.project.slug])
    held = sold_to(buyer, stored, office, desk)
    for text in buyer.values():
        assert list(traces(sql, text)) == ["booking"]
    desk.did_to_booking(held.reference, "erase-buyer")
    for text in buyer.values():
        assert list(traces(sql, text)) == []


def test_whoever_was_named_for_a_walk_in_sale_is_erased_too(
    stored: Unit, desk: Desk, buyer: dict[str, str], sql: Sql
) -> None:
    reference = desk.did(stored, "close-sale", buyer)["bookingReference"]
    desk.did_to_booking(reference, "erase-buyer")
    assert [name for text in buyer.values() for name in traces(sql, text)] == []


def test_erasing_is_noted_once_without_anything_personal(
    stored: Unit, office: Office, desk: Desk, buyer: dict[str, str], feed: Feed
) -> None:
    held = sold_to(buyer, stored, office, desk)
    etag, told, noted = stored.etag, feed.types_of(stored), len(desk.history(stored))
    answers = [desk.did_to_booking(held.reference, "erase-buyer") for _ in range(3)]
    assert len({answer["buyerErasedAt"] for answer in answers}) == 1
    entry, *older = desk.history(stored)
    assert len(older) == noted
    assert (entry["action"], entry["bookingReference"]) == ("erase-buyer", held.reference)
    assert (entry["before"], entry["after"]) == ({}, {})
    assert (stored.etag, feed.types_of(stored)) == (etag, told)


@pytest.mark.parametrize("condition", [Condition.HELD, Condition.SIGNED, Condition.RESERVED])
def test_who_is_still_buying_is_not_erased(
    condition: Condition, stored: Unit, office: Office, desk: Desk
) -> None:
    held = office.bring(stored, condition)
    assert held is not None
    before = desk.booking(held.reference)
    answer = desk.act_on_booking(held.reference, "erase-buyer")
    told = conflict(answer, "transition-not-allowed", condition.status)
    assert "has to end or be sold" in told["detail"]
    assert desk.booking(held.reference) == before


def test_who_is_still_owed_money_is_not_erased(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.reserved(stored)
    desk.did_to_booking(held.reference, "cancel")
    told = conflict(desk.act_on_booking(held.reference, "erase-buyer"), "transition-not-allowed", "available")
    assert "due back" in told["detail"]
    desk.did_to_booking(held.reference, "mark-refunded")
    assert desk.did_to_booking(held.reference, "erase-buyer")["status"] == "refunded"


def test_late_money_of_an_erased_buyer_is_due_back(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.signed(stored)
    desk.did_to_booking(held.reference, "cancel")
    desk.did_to_booking(held.reference, "erase-buyer")
    late = desk.did_to_booking(held.reference, "confirm-deposit")
    assert (late["status"], late["buyer"]) == ("refund-due", None)
    assert stored.read()["status"] == "available"


def test_the_buyers_own_link_still_opens_the_booking_without_the_person(
    stored: Unit, office: Office, desk: Desk, buyer: dict[str, str]
) -> None:
    held = sold_to(buyer, stored, office, desk)
    desk.did_to_booking(held.reference, "erase-buyer")
    read = succeeded(held.read())
    assert (read["status"], read["buyer"]) == ("sold", None)
    conflict(held.sign(buyer), "transition-not-allowed", "sold")


def test_an_erased_sale_can_be_revoked(
    stored: Unit, office: Office, desk: Desk, admin: Desk, buyer: dict[str, str]
) -> None:
    held = sold_to(buyer, stored, office, desk)
    desk.did_to_booking(held.reference, "erase-buyer")
    admin.did(stored, "revoke-sale")
    assert desk.booking(held.reference)["status"] == "refund-due"


def test_no_fields_are_taken(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.sold(stored)
    invalid(desk.act_on_booking(held.reference, "erase-buyer", {"reason": "asked"}), "/reason")
    assert desk.booking(held.reference)["buyer"] is not None


def test_only_staff_of_the_project_erase(
    stored: Unit,
    office: Office,
    payments: Desk,
    integration: Desk,
    limited_desk: Desk,
    new_project: Callable[[], Project],
) -> None:
    held = office.sold(stored)
    for desk in (payments, integration):
        problem(desk.act_on_booking(held.reference, "erase-buyer"), 403)
    elsewhere = Unit(stored.http, new_project(), "A-101")
    elsewhere.create(full())
    other = office.sold(elsewhere)
    problem(limited_desk.act_on_booking(other.reference, "erase-buyer"), 404)
    assert limited_desk.did_to_booking(held.reference, "erase-buyer")["buyer"] is None
