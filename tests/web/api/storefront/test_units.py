"""What buyers see of the units, and what they agree to."""

from decimal import Decimal
from typing import Any

import httpx
import pytest

from tests.support.backoffice import Desk
from tests.support.bodies import full, minimal
from tests.support.buying import Buyer, Hold, offer_url, offers_url
from tests.support.client import Project, Unit, exact, number, pages_of
from tests.support.feed import Feed
from tests.support.problems import invalid, problem

OFFER_FIELDS = {
    "code", "projectSlug", "projectName", "type", "areaSqm", "priceSar", "vatIncluded", "vatRate", "totalSar",
    "depositPercent", "depositSar", "status", "bedrooms", "bathrooms", "deliveryYear", "floor", "description",
    "images", "files", "holdExpiresAt",
}  # fmt: skip


def listed(buyer: Buyer, project: Project, query: str = "") -> list[str]:
    response = buyer.send("GET", offers_url(project) + query)
    assert response.status_code == 200, response.text
    return [unit["code"] for unit in response.json()["units"]]


def test_an_offer_has_exactly_its_fields_alone_and_in_the_list(buyer: Buyer, stored: Unit) -> None:
    offer, unit = buyer.see(stored), stored.read()
    assert set(offer) == OFFER_FIELDS
    shared = OFFER_FIELDS & set(unit)
    assert {name: offer[name] for name in shared} == {name: unit[name] for name in shared}
    told = (number(offer["totalSar"]), number(offer["depositSar"]))
    assert told == (Decimal(1_092_500), Decimal("27312.50"))
    assert exact(buyer.send("GET", offers_url(stored.project))) == {"units": [offer], "nextCursor": None}


def test_an_offer_without_optional_fields_is_whole(buyer: Buyer, unit: Unit) -> None:
    empty = exact(buyer.send("GET", offers_url(unit.project)))
    assert empty == {"units": [], "nextCursor": None}
    unit.create(minimal())
    offer = buyer.see(unit)
    assert set(offer) == OFFER_FIELDS
    assert (offer["vatRate"], offer["images"], offer["depositSar"]) == (None, [], 0)


def test_a_held_unit_shows_when_its_hold_ends_and_nothing_of_its_booking(buyer: Buyer, held: Hold) -> None:
    response = buyer.send("GET", offer_url(held.unit))
    assert response.json()["holdExpiresAt"] == held.expires_at
    assert held.reference not in response.text
    assert held.token not in response.text


def test_units_on_sale_are_listed_by_status_and_others_are_not_shown(
    buyer: Buyer, http: httpx.Client, project: Project, desk: Desk
) -> None:
    shown, hidden = ("available", "held", "reserved", "sold"), ("unavailable", "archived")
    units = {status: Unit(http, project, f"A-{at}") for at, status in enumerate(shown + hidden)}
    for status, unit in units.items():
        unit.create(full(status="unavailable" if status == "unavailable" else "available"))
    for status in shown[1:]:
        desk.book(units[status], status)
    desk.did(units["archived"], "archive")
    assert listed(buyer, project) == [units[status].code for status in shown]
    for status in shown:
        assert listed(buyer, project, f"?status={status}") == [units[status].code]
        assert buyer.see(units[status])["status"] == status
    for status in hidden:
        problem(buyer.send("GET", offer_url(units[status])), 404)
    refusal = invalid(buyer.send("GET", f"{offers_url(project)}?status=unavailable"), "/query/status")
    assert refusal["errors"][0]["message"] == "This must be one of available, held, reserved, sold."


def test_what_is_stored_is_shown_at_once(buyer: Buyer, stored: Unit) -> None:
    stored.patch({"priceSar": 7, "floor": 12})
    assert buyer.see(stored)["priceSar"] == 7
    assert listed(buyer, stored.project, "?floor=12") == [stored.code]
    assert listed(buyer, stored.project, "?floor=4") == []
    stored.patch({"status": "unavailable"})
    problem(buyer.send("GET", offer_url(stored)), 404)


def test_pages_show_every_unit_once_and_in_order(
    http: httpx.Client, public: httpx.Client, project: Project
) -> None:
    codes = [f"A-{number:02}" for number in range(7)]
    for at, code in enumerate(codes):
        Unit(http, project, code).create(full(status="unavailable" if at % 3 == 2 else "available"))
    pages = list(pages_of(public, offers_url(project), "units", limit=2))
    assert max(map(len, pages)) == 2
    assert [unit["code"] for page in pages for unit in page] == [
        code for at, code in enumerate(codes) if at % 3 != 2
    ]


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


def test_unknown_places_are_404_and_bad_ones_422(buyer: Buyer, project: Project) -> None:
    nowhere = "/v1/storefront/projects/no-such-tower/units"
    for url in (f"{offers_url(project)}/A-999", nowhere, f"{nowhere}/A-1", "/v1/storefront/nowhere"):
        problem(buyer.send("GET", url), 404)
    bad = "/v1/storefront/projects/Not_A_Slug/units"
    invalid(buyer.send("GET", bad), "/path/slug")
    invalid(buyer.send("GET", f"{bad}/{'x' * 51}?colour=red"), "/path/slug", "/path/code", "/query/colour")


def test_offers_are_only_read(buyer: Buyer, stored: Unit, feed: Feed) -> None:
    etag = stored.etag
    for url in (offers_url(stored.project), offer_url(stored)):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            response = buyer.send(method, url)
            problem(response, 405)
            assert sorted(response.headers["allow"].split(", ")) == ["GET", "HEAD"]
        assert buyer.send("HEAD", url).status_code == 200
    assert (stored.etag, feed.of(stored)) == (etag, [])


def test_a_code_with_a_slash_is_one_part_of_the_path(
    buyer: Buyer, http: httpx.Client, project: Project
) -> None:
    unit = Unit(http, project, "A/1 é")
    unit.create(full())
    assert buyer.see(unit)["code"] == "A/1 é"
    assert buyer.hold(unit).read()["unitCode"] == "A/1 é"


# Terms


@pytest.mark.parametrize(
    ("price", "included", "rate", "percent", "total", "deposit"),
    [
        ("950000", True, None, None, "950000", "0"),
        # The deposit is of the total as it is displayed, not of what it was before it was rounded.
        ("0.10", False, "5", "50", "0.11", "0.06"),
        ("999999999999.99", False, "100", "100", "1999999999999.98", "1999999999999.98"),
    ],
)
def test_total_and_deposit_are_exact(
    buyer: Buyer, unit: Unit, price: str, included: bool, rate: str | None, percent: str | None,
    total: str, deposit: str,
) -> None:  # fmt: skip
    terms = {
        "priceSar": Decimal(price),
        "vatIncluded": included,
        "vatRate": rate and Decimal(rate),
        "depositPercent": percent and Decimal(percent),
    }
    unit.create(minimal(**terms))
    agreed = buyer.hold(unit).read()["terms"]
    assert {name: agreed[name] for name in terms} == terms
    assert [number(agreed[name]) for name in ("totalSar", "depositSar")] == [Decimal(total), Decimal(deposit)]
    offered = buyer.see(unit)
    assert {name: offered[name] for name in agreed} == agreed


def test_terms_are_those_of_the_moment_of_the_hold(buyer: Buyer, stored: Unit, desk: Desk) -> None:
    def reprice(price: int) -> None:
        body = full(priceSar=price, vatIncluded=None, vatRate=None, depositPercent=None)
        assert stored.put(body).status_code == 200

    def terms(held: Hold) -> dict[str, Any]:
        return dict(held.read()["terms"])

    cancelled = buyer.hold(stored)
    agreed = terms(cancelled)
    cancelled.cancel()
    reprice(1)
    assert terms(cancelled) == agreed
    sold = desk.sold(stored)
    fresh = terms(sold)
    assert (fresh["priceSar"], fresh["totalSar"], fresh["depositSar"]) == (1, 1, 0)
    reprice(2)
    assert (terms(cancelled), terms(sold)) == (agreed, fresh)
