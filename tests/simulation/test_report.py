"""Lines, the table and the totals."""

import re

import pytest
from rich.console import Console

from holdfast.simulation.actors import raise_price, toggle_note
from holdfast.simulation.client import ApiClient, open_http_client
from holdfast.simulation.report import COUNTS, LINES_PER_SECOND, LinePrinter, format_totals, render_table
from holdfast.simulation.state import ActivityEntry, Booking, Project, SimulationState

URL = "http://127.0.0.1:9"
TOTALS = {
    "buyers": 8, "seconds": 61.3, "ended": "finished", **dict.fromkeys(COUNTS, 0), "holds": 8, "sales": 5,
    "refusals": {"not-available": 2}, "bookings": {"cancelled": 3, "sold": 5}, "requests": 122,
    "slowestMs": 41.3, "unitsChecked": 8, "brokenPromises": [],
}  # fmt: skip


def entry(seconds: float) -> ActivityEntry:
    return ActivityEntry(seconds, "Noura Al-Otaibi", "holds A-1")


def test_a_line_has_its_time_and_too_many_for_a_second_are_counted() -> None:
    written: list[str] = []
    printer = LinePrinter(written.append)
    printer(entry(75.9))
    assert written == ["01:15  Noura Al-Otaibi       holds A-1"]
    written.clear()
    printer = LinePrinter(written.append)
    for _ in range(LINES_PER_SECOND + 5):
        printer(entry(0.5))
    printer(entry(1.2))
    assert len(written) == LINES_PER_SECOND + 2
    assert written[-2].strip() == "and 5 more"
    for _ in range(LINES_PER_SECOND):
        printer(entry(1.3))
    printer.close()
    assert written[-1].strip() == "and 1 more"


@pytest.fixture
def state() -> SimulationState:
    return SimulationState(ApiClient(open_http_client(URL), "key"), Project("tower", "The Tower", [], 0))


def table_lines(state: SimulationState, height: int) -> list[str]:
    console = Console(width=90, color_system=None)
    with console.capture() as captured:
        console.print(render_table(state, height))
    return captured.get().splitlines()


def test_the_table_shows_who_does_what(state: SimulationState) -> None:
    booking = Booking("Q39-4F6-4K6", "A-1", "token", "Noura Al-Otaibi", expires_at=state.elapsed() + 290)
    state.current["Noura Al-Otaibi"] = "reads the agreement", booking
    state.current["Faisal Al-Harbi"] = "looks for a unit", None
    state.record("Faisal Al-Harbi", "is too late for A-1", "racesLost", "not-available")
    lines = table_lines(state, 30)
    assert lines[0].startswith(f"The Tower at {URL}")
    (noura,) = [line.split() for line in lines if line.startswith("Noura")]
    assert noura[2:6] == ["A-1", "reads", "the", "agreement"]
    assert re.fullmatch(r"0\d:\d\d", noura[6])
    assert any("races lost 1" in line for line in lines)
    assert "rejected: not-available 1" in lines
    assert lines[-1].split(maxsplit=3)[3] == "is too late for A-1"
    # A hold that is over has no countdown.
    booking.status = "reserved"
    state.current["Noura Al-Otaibi"] = "waits for the keys", booking
    assert any(line.rstrip().endswith("waits for the keys") for line in table_lines(state, 30))


def test_a_project_is_shown_in_latin_letters() -> None:
    arabic, latin = "مرتفعات النرجس", "Narjis Heights"
    for name in (latin, f"{latin} | {arabic}", f"{arabic}\n{latin}"):
        assert Project("narjis", name, [], 0).latin_name == latin
    assert Project("narjis", arabic, [], 0).latin_name == "narjis"


@pytest.mark.parametrize("height", [20, 24, 50])
def test_the_table_fits_its_terminal(state: SimulationState, height: int) -> None:
    for number in range(40):
        state.current[f"Buyer {number}"] = "looks for a unit", None
        state.record(f"Buyer {number}", "holds A-1", "holds")
    lines = table_lines(state, height)
    assert len(lines) <= height
    assert any(line.startswith("and ") for line in lines)


def test_totals_are_formatted_as_sentences_and_tell_of_violations_and_of_nothing_to_check() -> None:
    assert format_totals(TOTALS) == [
        "All 8 buyers have finished after 61 s.",
        "Counted: holds 8, sales 5.",
        "Rejected: not-available 2.",
        "Bookings: cancelled 3, sold 5.",
        "122 requests, 2.0 a second; the slowest took 41 ms.",
        "No unit was held twice: the histories of 8 units agree.",
    ]
    sentence = "A-1 was given to two buyers at once: one and two."
    assert format_totals({**TOTALS, "brokenPromises": [sentence]})[-2:] == ["A promise was broken:", sentence]
    nothing = {**TOTALS, **dict.fromkeys(COUNTS, 0), "bookings": {}, "refusals": {}, "unitsChecked": 0}
    assert "Counted: none." in format_totals(nothing)
    assert format_totals(nothing)[-1] == "No unit was held, so there is no promise to check."


def test_prices_rise_to_round_numbers_and_a_description_is_changed_and_changed_back() -> None:
    assert list(map(raise_price, (0, 500_000, 437_000.5))) == [1_000, 506_000, 442_000]
    for text in ("", "A flat.", "A flat.\nشقة.", "شقة.", "A flat. | شقة.", "شقة. | A flat."):
        once = toggle_note(text)
        assert once != text
        assert len(once.split("\n")) == len(text.split("\n"))
        assert toggle_note(once) == text
