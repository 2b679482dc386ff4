"""Where units stand, by their codes or as staff set it; boards and listings that show and filter them."""

from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import layout
from holdfast.domain.board import NO_FILTERS, WIDEST_FLOOR, BoardFilter, BoardUnit, arrange_buildings
from holdfast.domain.booking import Terms
from holdfast.domain.layout import NO_PLACEMENT, LayoutUnit, PlacedUnit, Placement, arrange, guess_placement
from holdfast.domain.listing import Listing, ListingCursor, ListingOrder, UnitFilter, cursor_after, vat_amount
from holdfast.domain.status import Status

CLEAR: dict[str, tuple[str | None, int, int]] = {
    "A-1203": ("A", 12, 3), "A1203": ("A", 12, 3), "A/1203": ("A", 12, 3), "A 1203": ("A", 12, 3),
    "a_101": ("a", 1, 1), "AB-1203": ("AB", 12, 3), "B-0101": ("B", 1, 1), "B-0007": ("B", 0, 7),
    "A-001": ("A", 0, 1), "A-10203": ("A", 102, 3), "A-20099": ("A", 200, 99), "T2-1503": ("T2", 15, 3),
    "B1-203": ("B1", 2, 3), "BLK12-101": ("BLK12", 1, 1), "2-305": ("2", 3, 5), "2-1305": ("2", 13, 5),
    "1203": (None, 12, 3), "101": (None, 1, 1), "A-12-03": ("A", 12, 3), "A/12/03": ("A", 12, 3),
    "A.12.3": ("A", 12, 3), "A-12/03": ("A", 12, 3), "T2-15-03": ("T2", 15, 3), "1-12-03": ("1", 12, 3),
    "A-12-1203": ("A", 12, 3), "A-1-112": ("A", 1, 12), "12-03": (None, 12, 3), "1.12": (None, 1, 12),
    "A-G01": ("A", 0, 1), "A-g5": ("A", 0, 5), "A-G-05": ("A", 0, 5), "T2/GF/05": ("T2", 0, 5),
    "G-G01": ("G", 0, 1), "G-101": ("G", 1, 1), "GF-05": (None, 0, 5), "GF05": (None, 0, 5),
    "GFA-101": ("GFA", 1, 1), "أ-١٢٠٣": ("أ", 12, 3), "أ١٢٠٣": ("أ", 12, 3), "ب-١٢-٠٣": ("ب", 12, 3),
    "١٢٠٣": (None, 12, 3), "ب٢-1203": ("ب٢", 12, 3),
}  # fmt: skip
UNCLEAR = {
    "one number that has no floor": ["7", "12", "A-5", "A-12", "A12", "PH-01", "A12-03"],
    "a building or the ground floor": ["G01", "G-05", "G5"],
    "a ground floor with another floor": ["GF-101", "GF101", "gf_101", "A-GF101"],
    "a street and a villa": ["12-3", "1-2", "A-12-103", "2024-001", "101-203"],
    "two places for the hyphen": ["T11503", "T21503"],
    "a basement": ["A-B203", "B-B1-03", "A--1-03", "-101"],
    "no such floor or position": ["20101", "A-20101", "1200", "A-12-00", "A-100", "201-03"],
    "a kind of unit": ["VILLA-101", "Shop-101", "Penthouse", "شقة"],
    "something around it": ["A-1203-", "-1203", "A-1203b", "A-12-03-1", "A--1203", "A - 1203", "A-1203\n"],
    "numbers that are no digits": ["A-Ⅷ03", "A-1²03", "A-½03"],
    "too many digits": ["123456", "A-123456", "A-1234-03"],
}


@pytest.mark.parametrize(("code", "place"), CLEAR.items())
def test_a_clear_code_says_where_its_unit_stands(code: str, place: tuple[str | None, int, int]) -> None:
    assert guess_placement(code) == place


@pytest.mark.parametrize(
    ("reason", "code"), [(why, code) for why, codes in UNCLEAR.items() for code in codes]
)
def test_an_unclear_code_stands_nowhere_rather_than_in_the_wrong_place(reason: str, code: str) -> None:
    assert guess_placement(code) == NO_PLACEMENT, reason


@given(st.text(max_size=50) | st.from_regex(r"\w{0,3}[-/. ]?\d{0,5}[-/. ]?\d{0,5}", fullmatch=True))
def test_any_code_stands_within_bounds_or_nowhere(code: str) -> None:
    building, floor, position = guess_placement(code)
    if floor is None or position is None:
        assert (building, floor, position) == NO_PLACEMENT
    else:
        assert layout.FLOORS[0] <= floor <= layout.FLOORS[1]
        assert layout.POSITIONS[0] <= position <= layout.POSITIONS[1]


def arranged(codes: list[str]) -> list[str]:
    return [placed.code for placed in arrange(map(LayoutUnit, codes))]


@pytest.mark.parametrize(
    "codes",
    [
        ["A-1203", "T2-G01", "T2-901", "T2-902", "T2-1001", "T10-101", "101", "Roof"],
        ["A1203", "A-12-03", "A-12-3", "A-1203"],
        ["Kiosk", "Villa 9", "Villa 10"],
    ],
)
def test_units_are_arranged_by_building_floor_and_position_then_by_code(codes: list[str]) -> None:
    assert arranged(codes[::-1]) == arranged(sorted(codes)) == codes


def test_what_staff_set_wins_over_the_guess_even_where_it_is_nowhere_which_comes_last() -> None:
    own, roof = Placement("B", -1, 4), Placement("A", 30, 1)
    units = [LayoutUnit("A-1203", own), LayoutUnit("A-1204", NO_PLACEMENT), LayoutUnit("Roof", roof)]
    assert arrange([*units, LayoutUnit("A-101")]) == [
        PlacedUnit("A-101", Placement("A", 1, 1), True),
        PlacedUnit("Roof", roof, False),
        PlacedUnit("A-1203", own, False),
        PlacedUnit("A-1204", NO_PLACEMENT, False),
    ]
    # A floor that was sent wins over the guess, and staff over both.
    assert LayoutUnit("A-1203", floor=7).placement == ("A", 7, 3)
    assert LayoutUnit("Villa", floor=-1).placement == (None, -1, None)
    assert LayoutUnit("A-1204", Placement("B", None, 1), floor=7).placement == ("B", None, 1)
    # What is not known of a place comes last.
    known = [("A", -1, 1), ("A", 0, 1), ("A", 0, None), ("A", None, None), (None, 0, 1), (None, None, 1)]
    places = [*(Placement(*place) for place in known), NO_PLACEMENT]
    units = [LayoutUnit(str(9 - at), place) for at, place in enumerate(places)]
    assert [placed.placement for placed in arrange(units)] == places


# Boards


def unit(code: str = "A-101", bedrooms: int | None = 3, status: Status = Status.AVAILABLE) -> BoardUnit:
    area, price = Decimal(200), Decimal(1_000_000)
    return BoardUnit(UUID(int=1), code, "villa", area, price, bedrooms, status, False, None, 1)


@pytest.mark.parametrize(
    ("chosen", "floors"),
    [
        (
            dict.fromkeys(("A-101", "A-103", "A-201", "B-101")),
            [("A", 2, ["A-201"]), ("A", 1, ["A-101", None, "A-103"]), ("B", 1, ["B-101"])],
        ),
        ({"A-101": Placement(None, 1, 1), "Villa": None}, [(None, 1, ["A-101"]), (None, None, ["Villa"])]),
        (dict.fromkeys(("x", "y"), Placement("A", 1, 2)), [("A", 1, [None, "x", "y"])]),
        ({"x": Placement("A", 1, WIDEST_FLOOR + 1)}, [("A", 1, ["x"])]),
    ],
    ids=["the highest floor on top", "no floor last", "two in one position", "a position far away"],
)
def test_a_board_shows_units_by_place(chosen: dict[str, Placement | None], floors: list[object]) -> None:
    placed = arrange(LayoutUnit(code, place) for code, place in chosen.items())
    buildings = arrange_buildings(map(unit, chosen), placed)
    assert floors == [
        (building.name, floor.number, [one and one.code for one in floor.units])
        for building in buildings
        for floor in building.floors
    ]
    assert arrange_buildings([], placed) == []


FITTING = [
    NO_FILTERS, BoardFilter(statuses=frozenset({Status.AVAILABLE, Status.SOLD})), BoardFilter(type="villa"),
    BoardFilter(price_from=Decimal(1_000_000), price_to=Decimal(1_000_000)), BoardFilter(bedrooms=3),
    BoardFilter(sqm_price_from=Decimal(5000), sqm_price_to=Decimal(5000)),
]  # fmt: skip
NOT_FITTING = [
    BoardFilter(statuses=frozenset({Status.SOLD})), BoardFilter(type="Villa"), BoardFilter(bedrooms=0),
    BoardFilter(price_from=Decimal("1000000.01")), BoardFilter(price_to=Decimal("999999.99")),
    BoardFilter(sqm_price_from=Decimal("5000.01")), BoardFilter(sqm_price_to=Decimal("4999.99")),
]  # fmt: skip


def test_a_board_is_filtered() -> None:
    assert [filters for filters in FITTING if not filters.match(unit())] == []
    assert [filters for filters in NOT_FITTING if filters.match(unit())] == []
    assert not BoardFilter(bedrooms=0).match(unit(bedrooms=None))


# Listings


def listing(status: Status = Status.AVAILABLE) -> Listing:
    return Listing(unit(status=status), Terms(Decimal(1_000_000), False, Decimal(15), Decimal(10)), 1, None)


OFFERED = [
    UnitFilter(), UnitFilter(type="villa", bedrooms=3),
    UnitFilter(price_from=Decimal(1_150_000), price_to=Decimal(1_150_000)),
    UnitFilter(area_from=Decimal(200), area_to=Decimal(200)),
]  # fmt: skip
NOT_OFFERED = [
    UnitFilter(type="Flat"), UnitFilter(bedrooms=0), UnitFilter(price_from=Decimal("1150000.01")),
    UnitFilter(price_to=Decimal("1149999.99")), UnitFilter(area_to=Decimal("199.5")),
]  # fmt: skip


def test_a_listing_is_filtered_by_what_a_buyer_pays_and_whether_it_is_free() -> None:
    assert [filters for filters in OFFERED if not filters.match(listing())] == []
    assert [filters for filters in NOT_OFFERED if filters.match(listing())] == []
    free = [status for status in Status if UnitFilter(free_only=True).match(listing(status))]
    assert free == [Status.AVAILABLE]


@pytest.mark.parametrize(
    ("price", "included", "rate", "vat"),
    [("1000", False, 15, "150.00"), ("0.33", False, 15, "0.05"), ("1150", True, 15, "150.00"),
     ("1150", None, 15, "150.00"), ("1150", False, None, None), ("1150", True, 0, None)],
)  # fmt: skip
def test_the_amount_of_vat_is_known_where_its_rate_is(
    price: str, included: bool | None, rate: int | None, vat: str | None
) -> None:
    terms = Terms(Decimal(price), included, None if rate is None else Decimal(rate), None)
    assert vat_amount(terms) == (vat and Decimal(vat))


def test_a_page_of_listings_ends_where_its_order_says() -> None:
    assert cursor_after(listing(), ListingOrder.PRICE_DOWN) == ListingCursor(Decimal("1150000.00"), "A-101")
    assert cursor_after(listing(), ListingOrder.AREA) == ListingCursor(Decimal(200), "A-101")
    assert cursor_after(listing(), ListingOrder.FLOOR) == ListingCursor(None, "A-101")
