"""Codes as developers write them, and where their units stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.layout import (
    FLOORS,
    NO_PLACEMENT,
    POSITIONS,
    LayoutUnit,
    PlacedUnit,
    Placement,
    arrange,
    guess_placement,
)

CLEAR: dict[str, tuple[str | None, int, int]] = {
    "A-1203": ("A", 12, 3),
    "A1203": ("A", 12, 3),
    "A/1203": ("A", 12, 3),
    "A 1203": ("A", 12, 3),
    "a_101": ("a", 1, 1),
    "AB-1203": ("AB", 12, 3),
    "B-0101": ("B", 1, 1),
    "B-0007": ("B", 0, 7),
    "A-001": ("A", 0, 1),
    "A-10203": ("A", 102, 3),
    "A-20099": ("A", 200, 99),
    "T2-1503": ("T2", 15, 3),
    "B1-203": ("B1", 2, 3),
    "BLK12-101": ("BLK12", 1, 1),
    "2-305": ("2", 3, 5),
    "2-1305": ("2", 13, 5),
    "1203": (None, 12, 3),
    "101": (None, 1, 1),
    "A-12-03": ("A", 12, 3),
    "A/12/03": ("A", 12, 3),
    "A.12.3": ("A", 12, 3),
    "A-12/03": ("A", 12, 3),
    "T2-15-03": ("T2", 15, 3),
    "1-12-03": ("1", 12, 3),
    "A-12-1203": ("A", 12, 3),
    "A-1-112": ("A", 1, 12),
    "12-03": (None, 12, 3),
    "1.12": (None, 1, 12),
    "A-G01": ("A", 0, 1),
    "A-g5": ("A", 0, 5),
    "A-G-05": ("A", 0, 5),
    "T2/GF/05": ("T2", 0, 5),
    "G-G01": ("G", 0, 1),
    "G-101": ("G", 1, 1),
    "GF-05": (None, 0, 5),
    "GF05": (None, 0, 5),
    "GFA-101": ("GFA", 1, 1),
    "أ-١٢٠٣": ("أ", 12, 3),
    "أ١٢٠٣": ("أ", 12, 3),
    "ب-١٢-٠٣": ("ب", 12, 3),
    "١٢٠٣": (None, 12, 3),
    "ب٢-1203": ("ب٢", 12, 3),
}
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
        assert FLOORS[0] <= floor <= FLOORS[1]
        assert POSITIONS[0] <= position <= POSITIONS[1]


def test_units_are_arranged_by_building_floor_and_position() -> None:
    codes = ["T10-101", "T2-1001", "T2-902", "T2-G01", "T2-901", "Roof", "101", "A-1203"]
    assert _arranged(codes) == ["A-1203", "T2-G01", "T2-901", "T2-902", "T2-1001", "T10-101", "101", "Roof"]


def test_units_of_one_place_and_of_none_are_arranged_by_code() -> None:
    assert _arranged(["A-1203", "A-12-3", "A-12-03", "A1203"]) == ["A1203", "A-12-03", "A-12-3", "A-1203"]
    assert _arranged(["Villa 10", "Villa 9", "Kiosk"]) == ["Kiosk", "Villa 9", "Villa 10"]


def test_what_staff_set_wins_over_the_guess() -> None:
    units = [
        LayoutUnit("A-1203", Placement("B", -1, 4)),
        LayoutUnit("Roof", Placement("A", 30, 1)),
        LayoutUnit("A-101"),
    ]
    assert arrange(units) == [
        PlacedUnit("A-101", Placement("A", 1, 1), True),
        PlacedUnit("Roof", Placement("A", 30, 1), False),
        PlacedUnit("A-1203", Placement("B", -1, 4), False),
    ]


def test_a_floor_that_was_sent_wins_over_the_guess_and_staff_over_both() -> None:
    units = [
        LayoutUnit("A-1203", floor=7),
        LayoutUnit("Villa", floor=-1),
        LayoutUnit("A-1204", Placement("B", None, 1), floor=7),
    ]
    assert [unit.placement for unit in units] == [
        Placement("A", 7, 3),
        Placement(None, -1, None),
        Placement("B", None, 1),
    ]


def test_staff_may_set_a_unit_to_nowhere() -> None:
    assert arrange([LayoutUnit("A-1203", NO_PLACEMENT)]) == [PlacedUnit("A-1203", NO_PLACEMENT, False)]


def test_what_is_not_known_of_a_place_comes_last() -> None:
    places = [
        Placement("A", -1, 1),
        Placement("A", 0, 1),
        Placement("A", 0, None),
        Placement("A", None, None),
        Placement(None, 0, 1),
        Placement(None, None, 1),
        NO_PLACEMENT,
    ]
    units = [LayoutUnit(str(9 - at), place) for at, place in enumerate(places)]
    assert [placed.placement for placed in arrange(units)] == places


@given(st.lists(st.sampled_from([*CLEAR, "Roof", "A-5"]), unique=True).flatmap(st.permutations))
def test_the_order_is_the_same_however_the_units_come(codes: list[str]) -> None:
    assert _arranged(codes) == _arranged(sorted(codes))


def _arranged(codes: list[str]) -> list[str]:
    return [placed.code for placed in arrange(map(LayoutUnit, codes))]
