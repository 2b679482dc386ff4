"""The history of a unit: who did what, one entry for each change."""

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.support.backoffice import BUYER, Desk, Held, project_url, unit_url
from tests.support.bodies import full
from tests.support.client import Unit
from tests.support.keys import Key
from tests.support.sql import Sql
from tests.web.api.backoffice.conditions import Condition, Office, release, wait_for_the_end

WIRE_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
KEY_NAME = "a key of the tests"


@pytest.fixture
def made(stored: Unit, desk: Desk) -> Callable[[httpx.Response], dict[str, Any]]:
    """The one entry that a call has made."""
    before = desk.history(stored)

    def entry_of(response: httpx.Response) -> dict[str, Any]:
        assert response.status_code in (200, 201, 204), response.text
        entry, *older = desk.history(stored)
        assert older == before
        assert entry["requestId"] == response.headers["x-request-id"]
        assert WIRE_TIME.fullmatch(entry["at"])
        return dict(entry)

    return entry_of


Made = Callable[[httpx.Response], dict[str, Any]]


def test_an_action_of_staff_is_put_down_to_their_key(
    stored: Unit, desk: Desk, backoffice_key: Key, made: Made
) -> None:
    entry = made(desk.act(stored, "archive"))
    assert entry["actor"] == {"kind": "key", "id": str(backoffice_key.id), "name": KEY_NAME}
    assert (entry["action"], entry["bookingReference"]) == ("archive", None)
    assert entry["before"] == {"status": "available", "archived": False}
    assert entry["after"] == {"status": "unavailable", "archived": True}
    assert entry["at"] == stored.read()["updatedAt"]


def test_the_request_id_of_the_caller_is_kept(stored: Unit, desk: Desk) -> None:
    desk.http.post(f"{unit_url(stored)}/open", headers={"X-Request-Id": "erp-4711"})
    assert desk.last_entry(stored)["requestId"] == "erp-4711"


def test_staff_open_a_unit(stored: Unit, desk: Desk, made: Made) -> None:
    response = desk.act(stored, "open")
    entry, unit = made(response), response.json()
    assert (entry["action"], entry["bookingReference"]) == ("open", unit["bookingReference"])
    assert entry["before"] == {"status": "available", "holdExpiresAt": None}
    assert entry["after"] == {
        "status": "held",
        "holdExpiresAt": unit["holdExpiresAt"],
        "bookingStatus": "open",
    }


def test_a_hold_is_put_down_to_its_buyer(stored: Unit, office: Office, desk: Desk) -> None:
    held = office.held(stored)
    entry = desk.last_entry(stored)
    assert entry["actor"] == {"kind": "buyer", "id": held.reference, "name": None}
    assert (entry["action"], entry["bookingReference"]) == ("open", held.reference)


@pytest.fixture
def held(stored: Unit, office: Office) -> Held:
    return office.held(stored)


def test_a_signature_is_an_entry_though_the_unit_is_the_same(stored: Unit, held: Held, made: Made) -> None:
    etag = stored.etag
    entry = made(held.sign())
    assert (entry["action"], entry["bookingReference"]) == ("sign", held.reference)
    assert entry["actor"]["kind"] == "buyer"
    assert (entry["before"], entry["after"]) == ({"bookingStatus": "open"}, {"bookingStatus": "signed"})
    assert stored.etag == etag


def test_a_hold_cancelled_by_its_buyer(stored: Unit, held: Held, made: Made) -> None:
    hold_end = stored.read()["holdExpiresAt"]
    entry = made(held.cancel())
    assert (entry["action"], entry["actor"]["kind"]) == ("cancel-hold", "buyer")
    assert entry["before"] == {"status": "held", "holdExpiresAt": hold_end, "bookingStatus": "open"}
    assert entry["after"] == {"status": "available", "holdExpiresAt": None, "bookingStatus": "cancelled"}


def test_a_hold_cancelled_by_staff(stored: Unit, held: Held, desk: Desk, made: Made) -> None:
    entry = made(desk.act_on_booking(held.reference, "cancel"))
    assert (entry["action"], entry["actor"]["kind"]) == ("cancel-hold", "key")
    assert entry["bookingReference"] == held.reference


@pytest.fixture
def signed(held: Held) -> Held:
    assert held.sign().status_code == 200
    return held


def test_a_deposit_is_put_down_to_the_payment_system(
    stored: Unit, signed: Held, payments: Desk, payments_key: Key, made: Made
) -> None:
    hold_end = stored.read()["holdExpiresAt"]
    response = payments.act_on_booking(signed.reference, "confirm-deposit")
    entry = made(response)
    assert entry["actor"]["id"] == str(payments_key.id)
    assert (entry["action"], entry["bookingReference"]) == ("confirm-deposit", signed.reference)
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


def test_a_walk_in_sale_is_an_entry_with_its_booking(stored: Unit, desk: Desk, made: Made) -> None:
    response = desk.act(stored, "close-sale", BUYER)
    entry = made(response)
    assert entry["bookingReference"] == response.json()["bookingReference"]
    assert entry["before"] == {"status": "available"}
    assert entry["after"] == {"status": "sold", "bookingStatus": "sold"}


def test_a_lapse_is_put_down_to_the_clock_at_the_moment_of_the_end(
    stored: Unit, desk: Desk, office: Office, sql: Sql
) -> None:
    desk.settle(stored.project, holdSeconds=0.05)
    held = office.held(stored)
    end = desk.booking(held.reference)["holdExpiresAt"]
    wait_for_the_end(sql, stored)
    release(stored)
    entry = desk.last_entry(stored)
    assert entry["actor"] == {"kind": "clock", "id": None, "name": None}
    assert (entry["action"], entry["at"], entry["requestId"]) == ("lapse-hold", end, None)
    assert entry["bookingReference"] == held.reference
    assert entry["before"] == {"status": "held", "holdExpiresAt": end, "bookingStatus": "open"}
    assert entry["after"] == {"status": "available", "holdExpiresAt": None, "bookingStatus": "lapsed"}


def test_a_reservation_that_lapses_is_an_entry_too(
    stored: Unit, desk: Desk, office: Office, sql: Sql
) -> None:
    desk.settle(stored.project, reservationDays=0.00001)
    held = office.reserved(stored)
    wait_for_the_end(sql, stored)
    release(stored)
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["bookingReference"]) == ("lapse-reservation", held.reference)
    assert entry["after"]["bookingStatus"] == "refund-due"


def test_a_writer_that_finds_a_lapsed_hold_leaves_two_entries(
    stored: Unit, desk: Desk, office: Office, sql: Sql
) -> None:
    desk.settle(stored.project, holdSeconds=0.05)
    office.held(stored)
    wait_for_the_end(sql, stored)
    desk.did(stored, "archive")
    assert [entry["action"] for entry in desk.history(stored)][:2] == ["archive", "lapse-hold"]


def test_the_whole_way_of_a_sale_is_told_and_nothing_of_the_buyers_person(
    stored: Unit, office: Office, admin: Desk
) -> None:
    held = office.sold(stored)
    admin.did(stored, "revoke-sale")
    admin.did_to_booking(held.reference, "mark-refunded")
    admin.did(stored, "put-on-sale")
    actions = [entry["action"] for entry in admin.history(stored)]
    assert actions == [
        "put-on-sale",
        "mark-refunded",
        "revoke-sale",
        "close-sale",
        "confirm-deposit",
        "sign",
        "open",
        "create",
    ]
    told = admin.http.get(f"{unit_url(stored)}/history").text
    assert not [value for value in (*BUYER.values(), held.token) if value in told]


@pytest.mark.parametrize("condition", Condition)
def test_what_changes_nothing_leaves_no_entry(
    condition: Condition, stored: Unit, office: Office, desk: Desk
) -> None:
    held = office.bring(stored, condition)
    before = desk.history(stored)
    assert stored.put(full()).status_code == 200
    assert stored.patch({}).status_code == 200
    assert stored.patch({"bedrooms": 3}).status_code == 200
    if condition in (Condition.SIGNED, Condition.RESERVED, Condition.SOLD):
        assert held is not None
        assert held.sign().status_code == 200
    desk.settle(stored.project, name="Another name")
    layout = {"units": [{"code": stored.code, "building": "Z", "floor": 1, "position": 1}]}
    assert desk.http.put(f"{project_url(stored.project)}/layout", json=layout).status_code == 200
    assert desk.history(stored) == before
