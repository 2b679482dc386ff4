"""The history of a unit: who did what, one entry for each change, the latest first."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.support.backoffice import Desk, project_url, unit_url
from tests.support.bodies import NULLABLE, full, minimal
from tests.support.buying import BUYER, Hold
from tests.support.client import Project, Unit, put_array
from tests.support.keys import Key, Keys
from tests.support.problems import invalid, problem
from tests.support.sql import Sql
from tests.web.api.backoffice.conditions import Condition

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
KEY_NAME = "a key of the tests"

Made = Callable[[httpx.Response], dict[str, Any]]


@pytest.fixture
def made(stored: Unit, desk: Desk) -> Made:
    """The one entry that a call has made."""
    before = desk.history(stored)

    def entry_of(response: httpx.Response) -> dict[str, Any]:
        nonlocal before
        assert response.status_code in (200, 201, 204), response.text
        entry, *older = desk.history(stored)
        assert older == before
        assert entry["requestId"] == response.headers["x-request-id"]
        assert WIRE_TIME.fullmatch(entry["at"])
        before = [entry, *older]
        return dict(entry)

    return entry_of


# Fields


def test_a_creation_tells_all_that_was_sent_and_the_key_that_sent_it(
    stored: Unit, http: httpx.Client, desk: Desk, sql: Sql
) -> None:
    (entry,) = desk.history(stored)
    assert (entry["action"], entry["before"]) == ("create", None)
    assert entry["after"] == full(status="available")
    assert (entry["bookingReference"], entry["at"]) == (None, stored.read()["createdAt"])
    actor = entry["actor"]
    assert (actor["kind"], actor["name"]) == ("key", "tests")
    assert sql.value("select name from api_key where id = $1::uuid", actor["id"]) == "tests"
    smaller = Unit(http, stored.project, "A-102")
    smaller.create(minimal(status="unavailable"))
    assert desk.last_entry(smaller)["after"] == minimal(status="unavailable")


def test_a_replacement_tells_what_differs_and_what_it_clears(stored: Unit, made: Made) -> None:
    entry = made(stored.put(minimal(priceSar=Decimal("1000000.01"))))
    before = full()
    cleared = {name: before[name] for name in (*NULLABLE, "images", "files")}
    assert (entry["action"], entry["before"]) == ("change", cleared | {"priceSar": 950_000})
    assert entry["after"] == {
        **dict.fromkeys(NULLABLE),
        "images": [],
        "files": [],
        "priceSar": Decimal("1000000.01"),
    }


def test_a_patch_tells_the_exact_values_as_they_were_sent(stored: Unit, desk: Desk, made: Made) -> None:
    images = [{"url": "https://media.example/c.jpg", "name": "North"}, "https://media.example/d.jpg"]
    for name, value in {
        "areaSqm": Decimal("9999999.9999"),
        "priceSar": Decimal("999999999999.99"),
        "depositPercent": Decimal("33.3333"),
        "vatIncluded": True,
        "description": 'Quotes "here", أ and \n lines',
        "deliveryYear": None,
        "type": "villa",
        "images": images,
    }.items():
        entry = made(stored.patch({name: value}))
        assert (entry["action"], entry["bookingReference"]) == ("change", None)
        assert (entry["before"], entry["after"]) == ({name: full()[name]}, {name: value})
    text = desk.http.get(f"{unit_url(stored)}/history").text
    assert '"areaSqm":9999999.9999' in text.replace(" ", "")


def test_a_change_of_status_with_fields_is_one_entry(stored: Unit, desk: Desk, made: Made) -> None:
    entry = made(stored.patch({"status": "unavailable", "bedrooms": 9}))
    assert entry["action"] == "take-off-sale"
    assert entry["before"] == {"bedrooms": 3, "status": "available"}
    assert entry["after"] == {"bedrooms": 9, "status": "unavailable"}
    assert made(stored.put(full(status="available")))["action"] == "put-on-sale"


def test_each_changed_unit_of_a_bulk_call_has_its_entry(
    http: httpx.Client, project: Project, desk: Desk
) -> None:
    units = [Unit(http, project, f"A-{number}") for number in range(3)]
    first = put_array(http, project, [minimal(code=unit.code) for unit in units])
    changed = [minimal(code=unit.code, bedrooms=at or None) for at, unit in enumerate(units)]
    put_array(http, project, [minimal(code=unit.code, bedrooms=9) for unit in units], dryRun="true")
    second = put_array(http, project, changed)
    ids = [first.headers["x-request-id"], second.headers["x-request-id"]]
    assert [entry["requestId"] for entry in desk.history(units[0])] == ids[:1]
    for at, unit in enumerate(units[1:], start=1):
        entries = desk.history(unit)
        assert [entry["requestId"] for entry in entries] == ids[::-1]
        assert [entry["action"] for entry in entries] == ["change", "create"]
        assert (entries[0]["before"], entries[0]["after"]) == ({"bedrooms": None}, {"bedrooms": at})


# Actions


def test_an_action_of_staff_is_put_down_to_their_key(
    stored: Unit, desk: Desk, backoffice_key: Key, made: Made
) -> None:
    entry = made(desk.act(stored, "archive"))
    assert entry["actor"] == {"kind": "key", "id": str(backoffice_key.id), "name": KEY_NAME}
    assert (entry["action"], entry["bookingReference"]) == ("archive", None)
    assert entry["before"] == {"status": "available", "archived": False}
    assert entry["after"] == {"status": "unavailable", "archived": True}
    assert entry["at"] == stored.read()["updatedAt"]
    desk.http.post(f"{unit_url(stored)}/put-on-sale", headers={"X-Request-Id": "erp-4711"})
    assert desk.last_entry(stored)["requestId"] == "erp-4711"


def test_a_key_that_is_revoked_keeps_its_name_in_the_history(
    stored: Unit, desk: Desk, keys: Keys, http: httpx.Client
) -> None:
    key = keys.issue()
    headers = {"Authorization": f"Bearer {key.text}", "Content-Type": "application/json"}
    assert http.patch(stored.url, content='{"bedrooms": 9}', headers=headers).status_code == 200
    keys.revoke(key)
    assert desk.last_entry(stored)["actor"] == {"kind": "key", "id": str(key.id), "name": KEY_NAME}


def test_a_hold_of_staff_tells_its_end_and_a_sale_its_booking(stored: Unit, desk: Desk, made: Made) -> None:
    response = desk.act(stored, "open")
    entry, unit = made(response), response.json()
    assert (entry["action"], entry["bookingReference"]) == ("open", unit["bookingReference"])
    assert entry["before"] == {"status": "available", "holdExpiresAt": None}
    held = {"status": "held", "holdExpiresAt": unit["holdExpiresAt"], "bookingStatus": "open"}
    assert entry["after"] == held
    entry = made(desk.act_on_booking(unit["bookingReference"], "cancel"))
    assert (entry["action"], entry["actor"]["kind"]) == ("cancel-hold", "key")
    assert entry["before"] == held
    assert entry["after"] == {"status": "available", "holdExpiresAt": None, "bookingStatus": "cancelled"}
    response = desk.act(stored, "close-sale", BUYER)
    entry = made(response)
    assert entry["bookingReference"] == response.json()["bookingReference"]
    assert entry["before"] == {"status": "available"}
    assert entry["after"] == {"status": "sold", "bookingStatus": "sold"}


def test_a_hold_its_signature_and_its_end_are_put_down_to_the_buyer(
    stored: Unit, held: Hold, desk: Desk, made: Made
) -> None:
    buyer = {"kind": "buyer", "id": held.reference, "name": None}
    opened = desk.last_entry(stored)
    assert (opened["actor"], opened["action"]) == (buyer, "open")
    etag = stored.etag
    signed = made(held.try_to_sign())
    assert (signed["actor"], signed["action"], signed["bookingReference"]) == (buyer, "sign", held.reference)
    assert (signed["before"], signed["after"]) == ({"bookingStatus": "open"}, {"bookingStatus": "signed"})
    assert stored.etag == etag
    cancelled = made(held.cancel())
    assert (cancelled["actor"], cancelled["action"]) == (buyer, "cancel-hold")


def test_a_deposit_is_put_down_to_the_payment_system(
    stored: Unit, held: Hold, payments: Desk, payments_key: Key, made: Made
) -> None:
    made(held.try_to_sign())
    hold_end = stored.read()["holdExpiresAt"]
    response = payments.act_on_booking(held.reference, "confirm-deposit")
    entry = made(response)
    assert entry["actor"]["id"] == str(payments_key.id)
    assert (entry["action"], entry["bookingReference"]) == ("confirm-deposit", held.reference)
    assert entry["before"] == {
        "status": "held",
        "holdExpiresAt": hold_end,
        "reservedUntil": None,
        "bookingStatus": "signed",
    }
    assert entry["after"] == {
        "status": "reserved",
        "holdExpiresAt": None,
        "reservedUntil": response.json()["reservedUntil"],
        "bookingStatus": "reserved",
    }


def test_a_lapse_is_put_down_to_the_clock_at_the_moment_of_the_end(
    stored: Unit, held: Hold, desk: Desk, sql: Sql
) -> None:
    held.end_now(sql)
    end = desk.booking(held.reference)["holdExpiresAt"]
    desk.did(stored, "archive")
    archived, entry, *_ = desk.history(stored)
    assert archived["action"] == "archive"
    assert entry["actor"] == {"kind": "clock", "id": None, "name": None}
    assert (entry["action"], entry["at"], entry["requestId"]) == ("lapse-hold", end, None)
    assert entry["bookingReference"] == held.reference
    assert entry["before"] == {"status": "held", "holdExpiresAt": end, "bookingStatus": "open"}
    assert entry["after"] == {"status": "available", "holdExpiresAt": None, "bookingStatus": "lapsed"}
    desk.did(stored, "put-on-sale")
    reserved = desk.reserved(stored).end_now(sql)
    assert stored.patch({}).status_code == 200
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["bookingReference"]) == ("lapse-reservation", reserved.reference)
    assert entry["after"]["bookingStatus"] == "refund-due"


def test_the_whole_way_of_a_sale_is_told_and_nothing_of_the_buyers_person(stored: Unit, admin: Desk) -> None:
    held = admin.sold(stored)
    admin.did(stored, "revoke-sale")
    admin.did_to_booking(held.reference, "mark-refunded")
    admin.did(stored, "put-on-sale")
    assert [entry["action"] for entry in admin.history(stored)] == [
        "put-on-sale", "mark-refunded", "revoke-sale", "close-sale",
        "confirm-deposit", "sign", "open", "create",
    ]  # fmt: skip
    told = admin.http.get(f"{unit_url(stored)}/history").text
    assert not [value for value in (*BUYER.values(), held.token) if value in told]


@pytest.mark.parametrize("condition", [Condition.AVAILABLE, Condition.SIGNED, Condition.ARCHIVED])
def test_what_changes_nothing_leaves_no_entry(condition: Condition, stored: Unit, desk: Desk) -> None:
    held = desk.bring(stored, condition)
    before = desk.history(stored)
    assert stored.put(full()).status_code == 200
    assert stored.patch({}).status_code == 200
    assert stored.patch({"bedrooms": 3}).status_code == 200
    if held is not None:
        held.sign()
    desk.settle(stored.project, name="Another name")
    layout = {"units": [{"code": stored.code, "building": "Z", "floor": 1, "position": 1}]}
    assert desk.http.put(f"{project_url(stored.project)}/layout", json=layout).status_code == 200
    assert desk.history(stored) == before


def test_what_is_refused_leaves_no_entry(stored: Unit, held: Hold, desk: Desk) -> None:
    before = desk.history(stored)
    for body in ({"status": "available"}, {"priceSar": 1}, {"bedrooms": -1}, {"nonsense": 1}):
        assert stored.patch(body).status_code in (409, 422)
    assert stored.patch({"bedrooms": 9}, If_Match='"stale"').status_code == 412
    assert desk.history(stored) == before


# Pages


def test_pages_follow_each_other_without_gap_or_repetition(stored: Unit, desk: Desk) -> None:
    for bedrooms in range(10, 15):
        assert stored.patch({"bedrooms": bedrooms}).status_code == 200
    whole = desk.history(stored)
    assert [entry["after"]["bedrooms"] for entry in whole] == [14, 13, 12, 11, 10, 3]
    paged: list[dict[str, Any]] = []
    query: dict[str, str | int] = {"limit": 3}
    # What is written meanwhile does not move the next page, and a full last page is the last.
    for further in (20, 21):
        page = desk.history_page(stored, **query)
        assert stored.patch({"bedrooms": further}).status_code == 200
        paged += page["entries"]
        query = {"limit": 3, "cursor": page["nextCursor"] or ""}
    assert (paged, query["cursor"]) == (whole, "")


def test_every_wrong_parameter_is_refused(stored: Unit, desk: Desk) -> None:
    for wrong in ({"limit": "0", "cursor": "x", "offset": "1"}, {"limit": "1001", "cursor": ""}):
        answer = desk.http.get(f"{unit_url(stored)}/history", params=wrong)
        invalid(answer, *(f"/query/{name}" for name in wrong))


def test_an_unknown_unit_has_no_history(unit: Unit, desk: Desk) -> None:
    problem(desk.http.get(f"{unit_url(unit)}/history"), 404)
    unknown = Unit(unit.http, Project("", "no-such-tower", ""), "A-1")
    problem(desk.http.get(f"{unit_url(unknown)}/history"), 404)
