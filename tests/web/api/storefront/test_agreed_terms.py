"""What a buyer agrees to: worked out to the halala, and frozen when the unit is opened."""

from decimal import Decimal
from typing import Any

import pytest

from tests.support import states
from tests.support.bodies import full, minimal
from tests.support.buying import Buyer, Hold
from tests.support.client import Unit, exact, number
from tests.support.sql import Sql


def money(text: str) -> Decimal:
    return Decimal(text)


# price, vatIncluded, vatRate, depositPercent -> total, deposit
TABLE = [
    ("950000", False, "15", "2.5", "1092500", "27312.50"),
    ("950000", True, "15", "2.5", "950000", "23750"),
    ("950000", None, "15", "2.5", "950000", "23750"),
    ("950000", False, None, "2.5", "950000", "23750"),
    ("950000", True, None, None, "950000", "0"),
    ("950000", None, None, None, "950000", "0"),
    ("950000", False, "15", None, "1092500", "0"),
    ("950000", False, "0", "0", "950000", "0"),
    ("950000", False, "100", "100", "1900000", "1900000"),
    ("0", False, "15", "10", "0", "0"),
    # Half a halala goes up, also where the even one is below.
    ("0.10", False, "5", None, "0.11", "0"),
    ("0.30", False, "15", None, "0.35", "0"),
    ("0.50", None, None, "1", "0.50", "0.01"),
    ("0.45", True, "15", "10", "0.45", "0.05"),
    ("0.01", False, "49.9999", None, "0.01", "0"),
    ("0.01", False, "50", "49.9999", "0.02", "0.01"),
    # The deposit is of the total as it is displayed, not of what it was before it was rounded.
    ("0.10", False, "5", "50", "0.11", "0.06"),
    ("999999999999.99", False, "0.0001", "0.0001", "1000000999999.99", "1000001"),
    ("999999999999.99", False, "100", "100", "1999999999999.98", "1999999999999.98"),
]


def optional(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


@pytest.mark.parametrize(("price", "included", "rate", "percent", "total", "deposit"), TABLE)
def test_total_and_deposit_are_exact(
    buyer: Buyer,
    unit: Unit,
    price: str,
    included: bool | None,
    rate: str | None,
    percent: str | None,
    total: str,
    deposit: str,
) -> None:
    terms = {
        "priceSar": Decimal(price),
        "vatIncluded": included,
        "vatRate": optional(rate),
        "depositPercent": optional(percent),
    }
    unit.create(minimal(**terms))
    agreed = buyer.hold(unit).read()["terms"]
    assert {name: agreed[name] for name in terms} == terms
    assert (number(agreed["totalSar"]), number(agreed["depositSar"])) == (money(total), money(deposit))
    offered = buyer.see(unit)
    assert {name: offered[name] for name in agreed} == agreed


def reprice(unit: Unit) -> None:
    answer = unit.put(full(priceSar=1, vatIncluded=None, vatRate=None, depositPercent=None))
    assert answer.status_code == 200, answer.text


def unit_terms(held: Hold) -> dict[str, Any]:
    return dict(held.read()["terms"])


def test_a_price_that_changes_after_the_hold_ended_is_not_of_the_booking(held: Hold, buyer: Buyer) -> None:
    agreed = unit_terms(held)
    held.cancel()
    reprice(held.unit)
    assert unit_terms(held) == agreed
    fresh = unit_terms(buyer.hold(held.unit))
    assert (fresh["priceSar"], fresh["totalSar"], fresh["depositSar"]) == (1, 1, 0)
    assert unit_terms(held) == agreed


def test_a_price_that_changes_after_the_sale_is_not_of_the_booking(stored: Unit, sql: Sql) -> None:
    own = states.sell(sql, stored)
    agreed = unit_terms(own)
    reprice(stored)
    assert unit_terms(own) == agreed
    assert exact(own.get())["terms"]["priceSar"] == full()["priceSar"]


def test_a_price_that_changed_before_the_hold_is_what_is_agreed(buyer: Buyer, stored: Unit) -> None:
    stored.patch({"priceSar": Decimal("0.50"), "depositPercent": 1, "vatIncluded": True})
    agreed = unit_terms(buyer.hold(stored))
    assert (agreed["priceSar"], agreed["depositSar"]) == (Decimal("0.50"), Decimal("0.01"))
