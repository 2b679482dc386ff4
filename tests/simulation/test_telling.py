"""What is told of a play: lines, the table, the totals."""

from dataclasses import replace

import pytest
from rich.console import Console

from holdfast.simulation.calling import Caller, open_client
from holdfast.simulation.erp import noted, raised
from holdfast.simulation.ground import Ground
from holdfast.simulation.ledger import Claim
from holdfast.simulation.lines import LINES_A_SECOND, Lines
from holdfast.simulation.play import Play, SimulationOptions
from holdfast.simulation.story import Happening, Tone
from holdfast.simulation.table import drawn
from holdfast.simulation.totals import Totals

NOT_ASKED = "http://127.0.0.1:9"
TOTALS = Totals(
    url=NOT_ASKED,
    project="tower",
    buyers=8,
    seed=1,
    seconds=61.26,
    ended="finished",
    counts={"holds": 8, "sales": 5},
    refusals={"not-available": 2},
    bookings={"cancelled": 3, "sold": 5},
    requests=122,
    slowest_ms=41.26,
    units_checked=8,
    broken=[],
)


def happening(seconds: float, what: str = "holds A-1") -> Happening:
    return Happening(seconds, "Noura Al-Otaibi", what, Tone.GOOD)


def test_a_line_has_its_time() -> None:
    written: list[str] = []
    Lines(written.append)(happening(75.9))
    assert written == ["01:15  Noura Al-Otaibi       holds A-1"]


def test_what_is_too_much_for_a_second_is_counted() -> None:
    written: list[str] = []
    lines = Lines(written.append)
    for _ in range(LINES_A_SECOND + 5):
        lines(happening(0.5))
    lines(happening(1.2))
    assert len(written) == LINES_A_SECOND + 2
    assert written[-2].strip() == "and 5 more"
    for _ in range(LINES_A_SECOND):
        lines(happening(1.3))
    lines.close()
    assert written[-1].strip() == "and 1 more"


@pytest.fixture
def play() -> Play:
    ground = Ground("tower", "The Tower", ["A-1", "A-2"], 2)
    return Play(Caller(open_client(NOT_ASKED), "key"), ground, SimulationOptions(40, 1, 1.0))


def picture(play: Play, height: int) -> list[str]:
    console = Console(width=90, color_system=None)
    with console.capture() as captured:
        console.print(drawn(play, height))
    return captured.get().splitlines()


def test_the_table_shows_who_does_what(play: Play) -> None:
    claim = Claim("Q39-4F6-4K6", "A-1", "token", "Noura Al-Otaibi", ends_at=play.elapsed() + 290)
    play.story.show("Noura Al-Otaibi", "reads the agreement", claim)
    play.story.show("Faisal Al-Harbi", "looks around")
    play.story.refuse("Faisal Al-Harbi", "is too late for A-1, and looks on", "not-available", "racesLost")
    lines = picture(play, 30)
    assert lines[0].startswith(f"The Tower at {NOT_ASKED}")
    (noura,) = [line.split() for line in lines if line.startswith("Noura")]
    assert noura[2:6] == ["A-1", "reads", "the", "agreement"]
    assert noura[6].startswith("04:")
    assert any("races lost 1" in line for line in lines)
    assert "refused: not-available 1" in lines
    assert lines[-1].split(maxsplit=3)[3] == "is too late for A-1, and looks on"


def test_a_hold_that_is_over_has_no_countdown(play: Play) -> None:
    claim = Claim("Q39-4F6-4K6", "A-1", "token", "Noura Al-Otaibi", status="reserved", ends_at=900.0)
    play.story.show("Noura Al-Otaibi", "waits for the keys", claim)
    assert any(line.rstrip().endswith("waits for the keys") for line in picture(play, 30))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("The Tower", "The Tower"),
        ("Narjis Heights | مرتفعات النرجس", "Narjis Heights"),
        ("مرتفعات النرجس\nNarjis Heights", "Narjis Heights"),
        ("مرتفعات النرجس", "narjis"),
    ],
)
def test_a_project_is_shown_in_latin_letters(name: str, shown: str) -> None:
    assert Ground("narjis", name, [], 0).shown == shown


@pytest.mark.parametrize("height", [20, 24, 50])
def test_the_table_fits_its_terminal(play: Play, height: int) -> None:
    for number in range(40):
        play.story.show(f"Buyer {number}", "looks around")
        play.story.tell(f"Buyer {number}", "holds A-1", "holds")
    lines = picture(play, height)
    assert len(lines) <= height
    assert any(line.startswith("and ") for line in lines)


def test_totals_are_one_object_with_every_count() -> None:
    document = TOTALS.document()
    assert (document["holds"], document["sales"], document["lapsed"]) == (8, 5, 0)
    assert (document["seconds"], document["slowestMs"]) == (61.3, 41.3)
    assert document["brokenPromises"] == []


def test_totals_are_told_in_sentences() -> None:
    assert TOTALS.sentences() == [
        "All 8 buyers are through after 61 s.",
        "Counted: holds 8, sales 5.",
        "Refused: not-available 2.",
        "Bookings: cancelled 3, sold 5.",
        "122 requests, 2.0 a second; the slowest took 41 ms.",
        "No unit was held twice: the histories of 8 units agree.",
    ]


def test_a_broken_promise_is_told_instead() -> None:
    broken = replace(TOTALS, broken=["A-1 was given to two buyers at once: one and two."])
    assert not broken.is_sound
    assert broken.sentences()[-2:] == ["A promise was broken:", *broken.broken]


def test_nothing_held_is_nothing_checked() -> None:
    nothing = replace(TOTALS, counts={}, bookings={}, refusals={}, units_checked=0)
    assert "Counted: nothing." in nothing.sentences()
    assert nothing.sentences()[-1] == "No unit was held, so there is no promise to check."


@pytest.mark.parametrize(("price", "higher"), [(0, 1_000), (500_000, 506_000), (437_000.5, 442_000)])
def test_prices_rise_to_round_numbers(price: float, higher: int) -> None:
    assert raised(price) == higher


@pytest.mark.parametrize("text", ["", "A flat.", "A flat.\nشقة.", "شقة.", "A flat. | شقة.", "شقة. | A flat."])
def test_a_description_is_changed_and_changed_back(text: str) -> None:
    once = noted(text)
    assert once != text
    assert len(once.split("\n")) == len(text.split("\n"))
    assert noted(once) == text
