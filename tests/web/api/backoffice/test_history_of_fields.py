"""What an external system changes stands in the history value by value, in the names of the wire."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.support.backoffice import Desk, unit_url
from tests.support.bodies import NULLABLE, full, minimal
from tests.support.client import Unit, exact
from tests.support.keys import Keys
from tests.support.sql import Sql
from tests.web.api.backoffice.conditions import Office


def test_a_creation_tells_all_that_was_sent(stored: Unit, desk: Desk) -> None:
    (entry,) = desk.history(stored)
    assert (entry["action"], entry["before"]) == ("create", None)
    assert entry["after"] == full(status="available")
    assert (entry["bookingReference"], entry["at"]) == (None, stored.read()["createdAt"])


def test_a_creation_tells_nothing_that_was_not_sent(off_sale: Unit, desk: Desk) -> None:
    (entry,) = desk.history(off_sale)
    assert entry["after"] == minimal(status="unavailable")


def test_the_key_of_the_external_system_is_named(stored: Unit, desk: Desk, sql: Sql) -> None:
    actor = desk.last_entry(stored)["actor"]
    assert (actor["kind"], actor["name"]) == ("key", "tests")
    assert sql.value("select name from api_key where id = $1::uuid", actor["id"]) == "tests"


def test_a_replacement_tells_what_differs_and_what_it_clears(stored: Unit, desk: Desk) -> None:
    response = stored.put(minimal(priceSar=Decimal("1000000.01")))
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["requestId"]) == ("change", response.headers["x-request-id"])
    before = full()
    cleared = {name: before[name] for name in (*NULLABLE, "images", "files")}
    assert entry["before"] == cleared | {"priceSar": 950_000}
    assert entry["after"] == {
        **dict.fromkeys(NULLABLE),
        "images": [],
        "files": [],
        "priceSar": Decimal("1000000.01"),
    }


@pytest.mark.parametrize(
    ("name", "value", "before"),
    [
        ("areaSqm", Decimal("9999999.9999"), Decimal("120.5")),
        ("priceSar", Decimal("999999999999.99"), 950_000),
        ("priceSar", Decimal("0.1"), 950_000),
        ("depositPercent", Decimal("33.3333"), Decimal("2.5")),
        ("vatIncluded", True, False),
        ("description", 'Quotes "here", أ and \n lines', "A corner flat.\nSea view."),
        ("deliveryYear", None, 2027),
        ("type", "villa", "apartment"),
    ],
)
def test_a_patch_tells_the_exact_values(
    stored: Unit, desk: Desk, name: str, value: object, before: object
) -> None:
    response = stored.patch({name: value})
    assert response.status_code == 200, response.text
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["requestId"]) == ("change", response.headers["x-request-id"])
    assert (entry["before"], entry["after"]) == ({name: before}, {name: value})


def test_numbers_are_numbers_in_the_text_itself(stored: Unit, desk: Desk) -> None:
    stored.patch({"areaSqm": Decimal("100.0001")})
    text = desk.http.get(f"{unit_url(stored)}/history").text
    assert '"areaSqm":100.0001' in text.replace(" ", "")


def test_a_change_of_status_with_fields_is_one_entry(stored: Unit, desk: Desk) -> None:
    stored.patch({"status": "unavailable", "bedrooms": 9})
    entry, *older = desk.history(stored)
    assert len(older) == 1
    assert entry["action"] == "take-off-sale"
    assert entry["before"] == {"bedrooms": 3, "status": "available"}
    assert entry["after"] == {"bedrooms": 9, "status": "unavailable"}
    stored.put(full(status="available"))
    assert desk.last_entry(stored)["action"] == "put-on-sale"


def test_a_field_of_a_held_unit_changes_without_its_booking(stored: Unit, office: Office, desk: Desk) -> None:
    office.held(stored)
    assert stored.patch({"bedrooms": 9}).status_code == 200
    entry = desk.last_entry(stored)
    assert (entry["action"], entry["bookingReference"]) == ("change", None)
    assert (entry["before"], entry["after"]) == ({"bedrooms": 3}, {"bedrooms": 9})


@pytest.mark.parametrize(
    "body", [{"status": "available"}, {"priceSar": 1}, {"bedrooms": -1}, {"nonsense": 1}, {"bedrooms": 9}]
)
def test_what_is_refused_leaves_no_entry(
    stored: Unit, office: Office, desk: Desk, body: dict[str, Any]
) -> None:
    office.held(stored)
    before = desk.history(stored)
    response = stored.patch(body, If_Match='"stale"') if "bedrooms" in body else stored.patch(body)
    assert response.status_code in (409, 412, 422)
    assert desk.history(stored) == before


def test_media_stand_in_the_form_in_which_they_were_sent(stored: Unit, desk: Desk) -> None:
    images = [{"url": "https://media.example/c.jpg", "name": "North"}, "https://media.example/d.jpg"]
    stored.patch({"images": images})
    entry = desk.last_entry(stored)
    assert (entry["before"]["images"], entry["after"]["images"]) == (full()["images"], images)


def test_a_key_that_is_revoked_keeps_its_name_in_the_history(
    stored: Unit, desk: Desk, keys: Keys, http: httpx.Client
) -> None:
    key = keys.issue()
    headers = {"Authorization": f"Bearer {key.text}", "Content-Type": "application/json"}
    assert http.patch(stored.url, content='{"bedrooms": 9}', headers=headers).status_code == 200
    keys.revoke(key)
    actor = desk.last_entry(stored)["actor"]
    assert actor == {"kind": "key", "id": str(key.id), "name": "a key of the tests"}


def test_the_history_itself_changes_nothing(stored: Unit, desk: Desk) -> None:
    etag, page = stored.etag, exact(desk.http.get(f"{unit_url(stored)}/history"))
    assert exact(desk.http.get(f"{unit_url(stored)}/history")) == page
    assert stored.etag == etag
