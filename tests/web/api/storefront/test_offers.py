"""What buyers see of the units."""

from decimal import Decimal

import httpx
import pytest

from tests.support import states
from tests.support.bodies import full, minimal
from tests.support.buying import Buyer, Hold, offer_url, offers_url
from tests.support.client import Project, Unit, exact, number
from tests.support.feed import Feed
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

OFFER_FIELDS = {
    "code",
    "projectSlug",
    "projectName",
    "type",
    "areaSqm",
    "priceSar",
    "vatIncluded",
    "vatRate",
    "totalSar",
    "depositPercent",
    "depositSar",
    "status",
    "bedrooms",
    "bathrooms",
    "deliveryYear",
    "floor",
    "description",
    "images",
    "files",
    "holdExpiresAt",
}


@pytest.fixture
def mixed(http: httpx.Client, project: Project, sql: Sql) -> dict[str, Unit]:
    """A unit of every status, and an archived one."""
    statuses = ("available", "held", "reserved", "sold", "unavailable", "archived")
    units = {status: Unit(http, project, f"A-{at}-{status}") for at, status in enumerate(statuses)}
    for status, unit in units.items():
        unit.create(minimal(status="unavailable") if status == "unavailable" else full())
    for status in ("held", "reserved", "sold"):
        states.bring_to(sql, units[status], status)
    states.archive(sql, units["archived"])
    return units


def listed(buyer: Buyer, project: Project, query: str = "") -> list[str]:
    response = buyer.send("GET", offers_url(project) + query)
    assert response.status_code == 200, response.text
    return [unit["code"] for unit in response.json()["units"]]


def test_an_offer_has_exactly_its_fields(buyer: Buyer, stored: Unit) -> None:
    offer, unit = buyer.see(stored), stored.read()
    assert set(offer) == OFFER_FIELDS
    shared = OFFER_FIELDS & set(unit)
    assert {name: offer[name] for name in shared} == {name: unit[name] for name in shared}


def test_an_offer_tells_what_the_buyer_pays(buyer: Buyer, stored: Unit) -> None:
    offer = buyer.see(stored)
    told = (number(offer["totalSar"]), number(offer["depositSar"]))
    assert told == (Decimal(1_092_500), Decimal("27312.50"))


def test_an_offer_without_optional_fields_is_whole(buyer: Buyer, unit: Unit) -> None:
    unit.create(minimal())
    offer = buyer.see(unit)
    assert set(offer) == OFFER_FIELDS
    assert (offer["vatRate"], offer["images"], offer["depositSar"]) == (None, [], 0)


def test_a_held_unit_shows_when_its_hold_ends_and_nothing_of_its_booking(buyer: Buyer, held: Hold) -> None:
    response = buyer.send("GET", offer_url(held.unit))
    assert response.json()["holdExpiresAt"] == held.expires_at
    assert held.reference not in response.text
    assert held.token not in response.text


def test_the_list_shows_units_as_they_are_shown_alone(buyer: Buyer, stored: Unit) -> None:
    answer = exact(buyer.send("GET", offers_url(stored.project)))
    assert answer == {"units": [buyer.see(stored)], "nextCursor": None}


def test_units_off_sale_are_not_shown(buyer: Buyer, mixed: dict[str, Unit]) -> None:
    shown = [mixed[status].code for status in ("available", "held", "reserved", "sold")]
    assert listed(buyer, mixed["sold"].project) == shown
    for status in ("unavailable", "archived"):
        problem(buyer.send("GET", offer_url(mixed[status])), 404)


@pytest.mark.parametrize("status", ["available", "held", "reserved", "sold"])
def test_the_list_can_be_filtered_by_status(buyer: Buyer, mixed: dict[str, Unit], status: str) -> None:
    unit = mixed[status]
    assert listed(buyer, unit.project, f"?status={status}") == [unit.code]
    assert buyer.see(unit)["status"] == status


def test_the_list_can_be_filtered_by_floor(buyer: Buyer, stored: Unit) -> None:
    stored.patch({"floor": 12})
    assert listed(buyer, stored.project, "?floor=12") == [stored.code]
    assert listed(buyer, stored.project, "?floor=4") == []


def test_a_filter_does_not_bring_out_what_is_off_sale(buyer: Buyer, mixed: dict[str, Unit]) -> None:
    response = buyer.send("GET", f"{offers_url(mixed['sold'].project)}?status=unavailable")
    refusal = invalid(response, "/query/status")
    assert refusal["errors"][0]["message"] == "This must be one of available, held, reserved, sold."


def test_pages_show_every_unit_once_and_in_order(buyer: Buyer, http: httpx.Client, project: Project) -> None:
    codes = [f"A-{number:02}" for number in range(7)]
    for at, code in enumerate(codes):
        Unit(http, project, code).create(full(status="unavailable" if at % 3 == 2 else "available"))
    seen: list[str] = []
    cursor = ""
    while True:
        answer = buyer.send("GET", f"{offers_url(project)}?limit=2{cursor}").json()
        seen += [unit["code"] for unit in answer["units"]]
        if answer["nextCursor"] is None:
            break
        cursor = f"&cursor={answer['nextCursor']}"
    assert seen == [code for at, code in enumerate(codes) if at % 3 != 2]


def test_a_project_without_units_has_an_empty_list(buyer: Buyer, project: Project) -> None:
    assert exact(buyer.send("GET", offers_url(project))) == {"units": [], "nextCursor": None}


@pytest.mark.parametrize(
    ("query", "pointers"),
    [
        ("?limit=0", ["/query/limit"]),
        ("?limit=1001&status=Held&cursor=x", ["/query/limit", "/query/status", "/query/cursor"]),
        ("?updatedSince=2026-01-01T00:00:00Z", ["/query/updatedSince"]),
        ("?status=held&status=sold", ["/query/status"]),
    ],
)
def test_every_fault_of_a_query_is_named(
    buyer: Buyer, project: Project, query: str, pointers: list[str]
) -> None:
    invalid(buyer.send("GET", offers_url(project) + query), *pointers)


def test_unknown_places_are_404(buyer: Buyer, project: Project) -> None:
    problem(buyer.send("GET", f"{offers_url(project)}/A-999"), 404)
    problem(buyer.send("GET", "/v1/storefront/projects/no-such-tower/units"), 404)
    problem(buyer.send("GET", "/v1/storefront/projects/no-such-tower/units/A-1"), 404)
    problem(buyer.send("GET", "/v1/storefront/nowhere"), 404)


def test_a_bad_path_is_422(buyer: Buyer) -> None:
    bad = "/v1/storefront/projects/Not_A_Slug/units"
    invalid(buyer.send("GET", bad), "/path/slug")
    invalid(buyer.send("GET", f"{bad}/{'x' * 51}?colour=red"), "/path/slug", "/path/code", "/query/colour")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_offers_are_only_read(buyer: Buyer, stored: Unit, method: str) -> None:
    for url in (offers_url(stored.project), offer_url(stored)):
        response = buyer.send(method, url)
        problem(response, 405)
        assert sorted(response.headers["allow"].split(", ")) == ["GET", "HEAD"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_never_holds(buyer: Buyer, stored: Unit, feed: Feed, method: str) -> None:
    etag = stored.etag
    for url in (offers_url(stored.project), offer_url(stored)):
        assert buyer.send(method, url).status_code == 200
    assert buyer.send(method, f"{offer_url(stored)}/hold").status_code == 405
    assert (stored.etag, feed.of(stored)) == (etag, [])


def test_a_code_with_a_slash_is_one_part_of_the_path(
    buyer: Buyer, http: httpx.Client, project: Project
) -> None:
    unit = Unit(http, project, "A/1 é")
    unit.create(full())
    assert buyer.see(unit)["code"] == "A/1 é"
    assert buyer.hold(unit).read()["unitCode"] == "A/1 é"


def test_what_is_stored_is_shown_at_once(buyer: Buyer, stored: Unit) -> None:
    stored.patch({"priceSar": 7})
    assert buyer.see(stored)["priceSar"] == 7
    stored.patch({"status": "unavailable"})
    problem(buyer.send("GET", offer_url(stored)), 404)
