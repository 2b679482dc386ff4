"""Parameters of paths and queries, parsed without a server."""

from collections.abc import Callable
from typing import Any, get_args

import pytest

from holdfast.web.api import parameters
from holdfast.web.fields import FieldError
from holdfast.web.pagination import NUMBER_CURSOR, TEXT_CURSOR


def parse_of(annotated: Any) -> Callable[[str], Any]:
    parameter = get_args(annotated)[1]
    assert isinstance(parameter, parameters.Parameter)
    return parameter.parse


PARSE: dict[str, Callable[[str], Any]] = {
    **{name: parameter.parse for name, parameter in parameters.PATH_PARAMETERS.items()},
    "limit": parse_of(parameters.Limit),
    "floor": parse_of(parameters.FloorFilter),
    "status": parse_of(parameters.UnitStatusFilter),
    "cursor": parse_of(parameters.TextCursor),
    "after": parameters.feed_cursor("").parse,
    "time": parameters.time_parameter("").parse,
    "flag": parameters.flag("").parse,
}
SOME_ID = "5f0e6b1c-2f0a-4a57-9a53-0b7c1f4d2e88"
NO_CURSORS = ["nonsense!", "!!!", "A", "\x00", "é", "AA AA", "===", "", " 1"]
BAD: dict[str, list[str]] = {
    "slug": ["a", "x" * 101, "A-tower", "tower_1", "-tower", "tower-", "to--wer", "tower\n", "töwer", "١٢"],
    "code": [
        "", "x" * 51, "😀" * 51, " A", "A ", " ", "A\u00a0", "A\x00", "A\nB", "A\tB", "A\x7f", "A\x85B",
        "e\u0301", "\u212b", "A\u200b", "A\u200dB", "\ufeffA", "A\u202eB", "A\u2028B", "\ue000",
        "\U000e0080", "\uffff",
    ],
    "id": ["x", "1", "{a}", f"urn:uuid:{SOME_ID}", SOME_ID.replace("-", ""), ""],
    "limit": [
        "0", "-1", "1001", "1000000000", "abc", "1.5", "", "1e2", "+5", "1_0", "１", " 5", "9" * 5000,
        "-" + "9" * 5000,
    ],
    "floor": ["-10", "201", "1.0", "", "null", "+1", "٣", "9" * 5000],
    "status": ["nonsense", "Available", "archived", "available,held"],
    "cursor": [*NO_CURSORS, "x" * 4000],
    "after": [*NO_CURSORS, "-1", "9" * 30, "9" * 5000, "1.5", "bnVsbA", TEXT_CURSOR.encode("A-101")],
    "time": [
        "yesterday", "2026-13-01T00:00:00Z", "2026-01-01T25:00:00Z", "\x00", "1e400", "",
        "2026-11-14T09:30:60Z", "2026-11-14T24:00:00Z", "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59.999-12:00",
    ],
    "flag": ["yes", "1", "", "TRUE "],
}  # fmt: skip
GOOD: dict[str, list[str]] = {
    "slug": ["ab", "42", "a-b", "tower-1-of-2", "x" * 100, "a" + "-b" * 49 + "c"],
    "code": ["A", "é" * 50, "😀" * 50, "A/101", "شقة-١٠١", "a?b#c&d=e", "100%", "..", "\\", '"quoted"'],
    "id": [SOME_ID, SOME_ID.upper()],
    "limit": ["1", "1000"],
    "floor": ["-9", "200"],
    "status": ["available", "held", "reserved", "sold", "unavailable"],
    "cursor": [TEXT_CURSOR.encode("شقة")],
    "after": [NUMBER_CURSOR.encode(7)],
    "time": ["2026-11-14T09:30:00Z", "2026-11-14T12:30:00.123+03:00", "2026-11-14T12:30:00 03:00"],
    "flag": ["true", "false"],
}


@pytest.mark.parametrize("name", BAD)
def test_what_a_parameter_cannot_be_is_a_fault(name: str) -> None:
    for text in BAD[name]:
        with pytest.raises(FieldError):
            raise AssertionError(f"{text!r} is read as {PARSE[name](text)!r}")


@pytest.mark.parametrize("name", GOOD)
def test_what_a_parameter_may_be_is_read(name: str) -> None:
    for text in GOOD[name]:
        assert PARSE[name](text) is not None
