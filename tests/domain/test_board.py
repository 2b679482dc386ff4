"""What a board shows, and where."""

from decimal import Decimal
from uuid import uuid4

import pytest

from holdfast.domain.board import NO_FILTERS, WIDEST_FLOOR, BoardFilter, BoardUnit, arrange_buildings
from holdfast.domain.layout import LayoutUnit, Placement, arrange
from holdfast.domain.status import Status


def unit(code: str = "A-101", bedrooms: int | None = 3) -> BoardUnit:
    return BoardUnit(
        uuid4(), code, "villa", Decimal(200), Decimal(1_000_000), bedrooms, Status.AVAILABLE, False, None, 1
    )


def drawn(codes: list[str], chosen: dict[str, Placement] | None = None) -> list[tuple[object, ...]]:
    """Building, floor, and the codes on it."""
    buildings = arrange_buildings(
        [unit(code) for code in codes], arrange(LayoutUnit(code, (chosen or {}).get(code)) for code in codes)
    )
    return [
        (building.name, floor.number, [one and one.code for one in floor.units])
        for building in buildings
        for floor in building.floors
    ]


def test_the_highest_floor_is_on_top_and_units_stand_in_their_position() -> None:
    assert drawn(["A-101", "A-103", "A-201", "B-101"]) == [
        ("A", 2, ["A-201"]),
        ("A", 1, ["A-101", None, "A-103"]),
        ("B", 1, ["B-101"]),
    ]


def test_units_without_a_floor_come_last() -> None:
    assert drawn(["A-101", "Villa"], {"A-101": Placement(None, 1, 1)}) == [
        (None, 1, ["A-101"]),
        (None, None, ["Villa"]),
    ]


def test_two_units_in_one_position_stand_beside_each_other() -> None:
    chosen = {code: Placement("A", 1, 2) for code in ("x", "y")}
    assert drawn(["x", "y"], chosen) == [("A", 1, [None, "x", "y"])]


def test_a_position_far_away_leaves_no_gap() -> None:
    assert drawn(["x"], {"x": Placement("A", 1, WIDEST_FLOOR + 1)}) == [("A", 1, ["x"])]


def test_units_that_are_not_shown_are_not_in_the_picture() -> None:
    assert arrange_buildings([], arrange([LayoutUnit("A-101")])) == []


@pytest.mark.parametrize(
    ("filters", "fits"),
    [
        (NO_FILTERS, True),
        (BoardFilter(statuses=frozenset({Status.AVAILABLE, Status.SOLD})), True),
        (BoardFilter(statuses=frozenset({Status.SOLD})), False),
        (BoardFilter(type="villa"), True),
        (BoardFilter(type="Villa"), False),
        (BoardFilter(price_from=Decimal(1_000_000), price_to=Decimal(1_000_000)), True),
        (BoardFilter(price_from=Decimal("1000000.01")), False),
        (BoardFilter(price_to=Decimal("999999.99")), False),
        (BoardFilter(bedrooms=3), True),
        (BoardFilter(bedrooms=0), False),
        (BoardFilter(sqm_price_from=Decimal(5000), sqm_price_to=Decimal(5000)), True),
        (BoardFilter(sqm_price_from=Decimal("5000.01")), False),
        (BoardFilter(sqm_price_to=Decimal("4999.99")), False),
    ],
)
def test_filters_take_what_is_within_them(filters: BoardFilter, fits: bool) -> None:
    assert filters.match(unit()) is fits


def test_a_unit_without_bedrooms_is_not_found_by_their_number() -> None:
    assert not BoardFilter(bedrooms=0).match(unit(bedrooms=None))
