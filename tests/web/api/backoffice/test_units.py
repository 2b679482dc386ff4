"""Units in the back office: read, moved by the actions of the status table, sold to walk-in buyers.

The whole status table is tested in tests/domain; here, that it is the one that is served.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from holdfast.domain.transitions import Action, Caller, transition
from tests.support.backoffice import BOOKINGS, Desk, project_url, unit_url
from tests.support.bodies import UNIT_FIELDS, full, without
from tests.support.buying import ANOTHER_BUYER, BUYER, Hold
from tests.support.client import Project, Unit, exact, number, succeeded
from tests.support.feed import Feed
from tests.support.problems import conflict, invalid, problem
from tests.support.sql import Sql
from tests.web.api.backoffice.conditions import Condition, Watch

STAFF_FIELDS = UNIT_FIELDS | {"archived", "reservedUntil", "bookingReference"}
BUYER_POINTERS = tuple(f"/{name}" for name in BUYER)


def units_url(project: Project) -> str:
    return f"{project_url(project)}/units"


def listed(desk: Desk, project: Project, **query: str | int) -> dict[str, dict[str, object]]:
    """By code."""
    answer = succeeded(desk.http.get(units_url(project), params=query))
    assert set(answer) == {"units", "nextCursor"}
    return {unit["code"]: unit for unit in answer["units"]}


def test_a_unit_is_that_of_the_integration_api_with_what_staff_alone_know(stored: Unit, desk: Desk) -> None:
    found = succeeded(desk.http.get(unit_url(stored)))
    assert set(found) == STAFF_FIELDS
    assert {name: found[name] for name in UNIT_FIELDS} == exact(stored.get())
    assert (found["archived"], found["reservedUntil"], found["bookingReference"]) == (False, None, None)
    answer = desk.act(stored, "open")
    read = desk.http.get(unit_url(stored))
    assert exact(read) == exact(answer)
    assert read.headers["etag"] == answer.headers["etag"] == stored.etag


@pytest.mark.parametrize("condition", Condition)
def test_a_unit_names_the_booking_that_has_it(condition: Condition, stored: Unit, desk: Desk) -> None:
    held = desk.bring(stored, condition)
    found = succeeded(desk.http.get(unit_url(stored)))
    assert found["status"] == condition.status
    assert found["bookingReference"] == (held.reference if held else None)
    assert found["archived"] is (condition is Condition.ARCHIVED)
    assert (found["reservedUntil"] is not None) is (condition is Condition.RESERVED)
    assert listed(desk, stored.project) == {stored.code: found}


def test_a_hold_that_is_over_has_the_unit_no_longer(stored: Unit, desk: Desk, sql: Sql) -> None:
    desk.held(stored).end_now(sql)
    found = succeeded(desk.http.get(unit_url(stored)))
    assert (found["status"], found["bookingReference"]) == ("available", None)


def test_an_unchanged_unit_is_not_sent_again(stored: Unit, desk: Desk) -> None:
    etag = desk.http.get(unit_url(stored)).headers["etag"]
    again = desk.http.get(unit_url(stored), headers={"If-None-Match": etag})
    assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
    desk.did(stored, "archive")
    assert desk.http.get(unit_url(stored), headers={"If-None-Match": etag}).status_code == 200


def test_units_are_listed_page_by_page_in_the_order_of_codes_or_by_status(
    new_unit: Callable[[str], Unit], project: Project, desk: Desk
) -> None:
    held, *_ = [new_unit(code) for code in ("B-1", "A-2", "A-1")]
    first = succeeded(desk.http.get(units_url(project), params={"limit": 2}))
    assert [unit["code"] for unit in first["units"]] == ["A-1", "A-2"]
    rest = succeeded(desk.http.get(units_url(project), params={"limit": 2, "cursor": first["nextCursor"]}))
    assert [unit["code"] for unit in rest["units"]] == ["B-1"]
    assert rest["nextCursor"] is None
    reference = desk.did(held, "open")["bookingReference"]
    (found,) = listed(desk, project, status="held").values()
    assert (found["code"], found["bookingReference"]) == ("B-1", reference)
    assert set(listed(desk, project, status="available")) == {"A-1", "A-2"}
    assert listed(desk, project, status="sold") == {}


def test_every_wrong_parameter_is_refused(project: Project, desk: Desk) -> None:
    wrong = {"status": "gone", "limit": "0", "cursor": "!", "x": "1"}
    invalid(desk.http.get(units_url(project), params=wrong), *(f"/query/{name}" for name in wrong))


def test_an_unknown_unit_or_project_is_not_found(unit: Unit, project: Project, desk: Desk) -> None:
    problem(desk.http.get(unit_url(unit)), 404)
    problem(desk.act(unit, "open"), 404)
    assert not unit.exists
    nowhere = units_url(Project(project.id, "nowhere", ""))
    problem(desk.http.get(nowhere), 404)
    problem(desk.http.get(f"{nowhere}/A-101"), 404)


# Where each action is possible, and where it is not; only the clock lets holds and reservations lapse.
TABLE = {
    Action.OPEN: (Condition.AVAILABLE, Condition.HELD),
    Action.EXTEND: (Condition.RESERVED, Condition.SOLD),
    Action.LAPSE_HOLD: (None, Condition.HELD),
    Action.CANCEL_HOLD: (Condition.SIGNED, Condition.RESERVED),
    Action.CONFIRM_DEPOSIT: (Condition.SIGNED, Condition.RESERVED),
    Action.LAPSE_RESERVATION: (None, Condition.RESERVED),
    Action.CANCEL_RESERVATION: (Condition.RESERVED, Condition.HELD),
    Action.CLOSE_SALE: (Condition.RESERVED, Condition.SOLD),
    Action.PUT_ON_SALE: (Condition.ARCHIVED, Condition.AVAILABLE),
    Action.TAKE_OFF_SALE: (Condition.AVAILABLE, Condition.SOLD),
    Action.ARCHIVE: (Condition.UNAVAILABLE, Condition.ARCHIVED),
    Action.REVOKE_SALE: (Condition.SOLD, Condition.RESERVED),
}


@pytest.mark.parametrize("action", Action)
def test_an_action_is_refused_where_the_table_does_not_allow_it(
    action: Action, stored: Unit, admin: Desk, watch: Watch
) -> None:
    _, impossible = TABLE[action]
    admin.bring(stored, impossible)
    before = watch()
    conflict(admin.act(stored, action), "transition-not-allowed", impossible.status)
    assert watch() == before


@pytest.mark.parametrize(
    ("action", "condition"), [(action, possible) for action, (possible, _) in TABLE.items() if possible]
)
def test_an_action_moves_the_unit_as_the_table_says(
    action: Action, condition: Condition, stored: Unit, desk: Desk, admin: Desk, watch: Watch
) -> None:
    desk.bring(stored, condition)
    etag, events, noted = watch()
    actor = admin if action is Action.REVOKE_SALE else desk
    answer = actor.did(stored, action)
    row = transition(action, Caller.ADMIN, condition.status, condition is Condition.ARCHIVED)
    assert answer["status"] == stored.read()["status"] == row.target
    assert (answer["holdExpiresAt"] is not None) is (row.target == "held")
    assert (answer["reservedUntil"] is not None) is (row.target == "reserved")
    assert (answer["bookingReference"] is not None) is (row.target in ("held", "reserved", "sold"))
    assert answer["archived"] is (action is Action.ARCHIVE)
    after = watch()
    assert after[0] != etag
    assert after[1:] == (events + ([str(row.event)] if row.event else []), noted + 1)


def test_the_token_of_a_buyer_opens_nothing_to_staff(stored: Unit, desk: Desk, watch: Watch) -> None:
    """Which keys open what is in tests/web/pages/backoffice/test_roles.py."""
    held = desk.reserved(stored)
    before = watch()
    for action in ("confirm-deposit", "cancel", "close-sale", "extend", "reissue-link", "erase-buyer"):
        response = held.buyer.send("POST", f"{BOOKINGS}/{held.reference}/{action}", token=held.token)
        problem(response, 401)
        assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert watch() == before


def test_staff_open_a_unit_for_a_buyer(stored: Unit, desk: Desk) -> None:
    answer = desk.did(stored, "open")
    booking = desk.booking(answer["bookingReference"])
    assert (booking["status"], booking["unitCode"], booking["buyer"]) == ("open", stored.code, None)
    assert booking["holdExpiresAt"] == answer["holdExpiresAt"]
    conflict(desk.buyer.ask(stored), "not-available", "held")


def test_the_end_of_a_hold_is_told_where_it_helps_to_wait_for_it(stored: Unit, desk: Desk) -> None:
    end = desk.did(stored, "open")["holdExpiresAt"]
    for action, helps in (
        ("open", True), ("close-sale", True), ("put-on-sale", False), ("cancel-reservation", False),
    ):  # fmt: skip
        response = desk.act(stored, action)
        refusal = conflict(response, "transition-not-allowed", "held")
        assert refusal["detail"] == f"`{action}` is not possible while the unit is held."
        assert refusal.get("holdExpiresAt") == (end if helps else None)
        assert ("retry-after" in response.headers) is helps
    assert 0 < int(desk.act(stored, "open").headers["retry-after"]) <= 300


def test_an_action_can_depend_on_the_state_that_staff_have_seen(stored: Unit, desk: Desk) -> None:
    def archive(**headers: str) -> httpx.Response:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return desk.http.post(f"{unit_url(stored)}/archive", headers=sent)

    seen = stored.etag
    assert stored.patch({"bedrooms": 1}).status_code == 200
    current = stored.etag
    stale = archive(If_Match=seen)
    problem(stale, 412)
    assert stale.headers["etag"] == current
    for named in (current, f'"0-0", {current}', "*"):
        problem(archive(If_None_Match=named), 412)
    # Before what the state forbids.
    problem(desk.http.post(f"{unit_url(stored)}/cancel-hold", headers={"If-Match": seen}), 412)
    assert stored.etag == current
    assert archive(If_Match=current).status_code == 200
    desk.did(stored, "put-on-sale")
    assert archive(If_None_Match='"0-0"').status_code == 200


@pytest.mark.parametrize("action", ["take-off-sale", "archive", "cancel-hold"])
def test_ending_a_hold_cancels_its_booking(action: str, stored: Unit, desk: Desk, feed: Feed) -> None:
    held = desk.held(stored)
    answer = desk.did(stored, action)
    assert (answer["bookingReference"], answer["holdExpiresAt"]) == (None, None)
    assert desk.booking(held.reference)["status"] == "cancelled"
    assert held.read()["status"] == "cancelled"
    (_, ended) = feed.of(stored)
    released = "unit.released" if action == "cancel-hold" else "unit.unavailable"
    assert (ended["type"], ended["data"]["booking"]) == (released, None)
    assert ended["data"]["unit"]["previousStatus"] == "held"
    conflict(held.try_to_sign(), "transition-not-allowed", answer["status"])


def test_ending_a_reservation_or_a_sale_makes_its_deposit_due(stored: Unit, admin: Desk, feed: Feed) -> None:
    first = admin.reserved(stored)
    answer = admin.did(stored, "archive")
    assert (answer["bookingReference"], answer["reservedUntil"]) == (None, None)
    booking = admin.booking(first.reference)
    assert (booking["status"], booking["depositConfirmedAt"] is None) == ("refund-due", False)
    assert feed.of(stored)[-1]["data"]["unit"]["previousStatus"] == "reserved"
    admin.did(stored, "put-on-sale")
    second = admin.sold(stored)
    revoked = admin.did(stored, "revoke-sale")
    assert (revoked["status"], revoked["bookingReference"]) == ("unavailable", None)
    booking = admin.booking(second.reference)
    assert (booking["status"], booking["closedAt"] is None) == ("refund-due", False)
    event = feed.of(stored)[-1]["data"]
    assert (event["unit"]["previousStatus"], event["booking"]) == ("sold", None)
    admin.did(stored, "put-on-sale")
    assert admin.booking(admin.sold(stored).reference)["status"] == "sold"


def test_an_archived_unit_stays_so_until_staff_put_it_on_sale(off_sale: Unit, desk: Desk, feed: Feed) -> None:
    assert desk.did(off_sale, "archive")["archived"] is True
    (event,) = feed.of(off_sale)
    moved = event["data"]["unit"]
    assert (moved["previousStatus"], moved["status"]) == ("unavailable", "unavailable")
    conflict(off_sale.patch({"status": "available"}), "transition-not-allowed", "unavailable", "status")
    assert off_sale.patch({"bedrooms": 1}).status_code == 200
    answer = desk.did(off_sale, "put-on-sale")
    assert (answer["status"], answer["archived"]) == ("available", False)
    assert off_sale.patch({"status": "unavailable"}).status_code == 200
    assert off_sale.patch({"status": "available"}).status_code == 200


@pytest.mark.parametrize(
    "action", ["open", "cancel-hold", "put-on-sale", "take-off-sale", "archive", "confirm-deposit"]
)
def test_an_action_that_needs_no_body_takes_no_fields(stored: Unit, desk: Desk, action: str) -> None:
    etag = stored.etag
    invalid(desk.act(stored, action, {"reason": "x", "until": None}), "/reason", "/until")
    invalid(desk.act(stored, action, []), "")
    assert stored.etag == etag


# Sales to buyers who walked in


def walk_in(desk: Desk, unit: Unit) -> dict[str, Any]:
    """The booking of such a sale."""
    return desk.booking(desk.did(unit, "close-sale", BUYER)["bookingReference"])


def test_a_walk_in_sale_makes_a_booking_that_is_sold_on_the_terms_of_the_unit(
    stored: Unit, desk: Desk, feed: Feed
) -> None:
    booking = walk_in(desk, stored)
    assert (booking["status"], booking["unitCode"]) == ("sold", stored.code)
    assert list(booking["buyer"].values()) == list(BUYER.values())
    assert booking["closedAt"] == stored.read()["updatedAt"]
    absent = ("holdExpiresAt", "reservedUntil", "signedAt", "depositConfirmedAt")
    assert [booking[name] for name in absent] == [None] * 4
    terms = booking["terms"]
    assert [number(terms[name]) for name in ("priceSar", "totalSar")] == [950_000, 1_092_500]
    assert number(terms["depositSar"]) == number(terms["totalSar"]) * number(terms["depositPercent"]) / 100
    (event,) = feed.of(stored)
    assert (event["type"], event["data"]["unit"]["previousStatus"]) == ("unit.sold", "available")
    assert event["data"]["booking"] == {"reference": booking["reference"]}
    assert stored.put(full(priceSar=1)).status_code == 200
    assert desk.booking(booking["reference"])["terms"] == terms
    conflict(desk.buyer.ask(stored), "not-available", "sold")


def test_a_walk_in_sale_needs_the_whole_buyer(stored: Unit, desk: Desk) -> None:
    etag = stored.etag
    for body in (None, "{}"):
        refusal = invalid(desk.act(stored, "close-sale", body), *BUYER_POINTERS)
        messages = {error["message"] for error in refusal["errors"]}
        assert messages == {"This field is required: the unit is available."}
    invalid(desk.act(stored, "close-sale", without(BUYER, "buyerPhone")), "/buyerPhone")
    faulty = {"buyerName": " ", "buyerEmail": "nobody", "buyerPhone": "call me", "buyerAge": 30}
    invalid(desk.act(stored, "close-sale", faulty), *BUYER_POINTERS, "/buyerAge")
    for name in (None, 5, ["x"], "x" * 201, "a\u0000b", "\ud800", "two\nlines"):
        invalid(desk.act(stored, "close-sale", {**BUYER, "buyerName": name}), "/buyerName")
    assert stored.etag == etag
    assert desk.bookings(project=stored.project.slug)["bookings"] == []


def test_a_reserved_unit_is_sold_to_its_buyer_alone_and_a_held_one_to_nobody(
    stored: Unit, desk: Desk
) -> None:
    held = desk.signed(stored)
    conflict(desk.act(stored, "close-sale", ANOTHER_BUYER), "transition-not-allowed", "held")
    desk.did(stored, "confirm-deposit")
    refusal = conflict(desk.act(stored, "close-sale", ANOTHER_BUYER), "transition-not-allowed", "reserved")
    assert refusal["fields"] == list(BUYER)
    assert stored.read()["status"] == "reserved"
    assert desk.did(stored, "close-sale")["bookingReference"] == held.reference
    (booking,) = desk.bookings(project=stored.project.slug)["bookings"]
    assert (booking["status"], booking["buyer"]["name"]) == ("sold", BUYER["buyerName"])


def test_a_walk_in_sale_has_a_link_and_neither_signature_nor_deposit(stored: Unit, admin: Desk) -> None:
    reference = walk_in(admin, stored)["reference"]
    refusal = conflict(admin.act_on_booking(reference, "confirm-deposit"), "not-signed", "sold")
    assert refusal["detail"] == "This sale was closed without a hold; there is no deposit to confirm."
    own = Hold(admin.buyer, stored, reference, admin.did_to_booking(reference, "reissue-link")["token"])
    conflict(own.try_to_sign(), "transition-not-allowed", "sold")
    seen = own.read()
    assert (seen["status"], seen["buyer"]["name"], seen["signedAt"]) == ("sold", BUYER["buyerName"], None)
    admin.did(stored, "revoke-sale")
    assert admin.booking(reference)["status"] == "cancelled"
    conflict(admin.act_on_booking(reference, "mark-refunded"), "transition-not-allowed", "unavailable")


def test_of_many_walk_in_sales_at_once_one_is_made(stored: Unit, desk: Desk, feed: Feed) -> None:
    buyers = [{**BUYER, "buyerName": f"Buyer {at}"} for at in range(10)]
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda buyer: desk.act(stored, "close-sale", buyer), buyers))
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 9
    (booking,) = desk.bookings(project=stored.project.slug)["bookings"]
    (event,) = feed.of(stored)
    assert event["data"]["booking"] == {"reference": booking["reference"]}
    assert len(desk.history(stored)) == 2
