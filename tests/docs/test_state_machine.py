"""The page of the status machine says what the status table says."""

import re

import pytest

from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Transition
from tests.docs.documents import blocks, table
from tests.docs.state_machine import HEADINGS, PAGE, document

ARROW = re.compile(r"    (\[\*\]|[a-z]+) --> ([a-z]+) : ([^:;\n]+)")
"""What Mermaid reads as an arrow: a colon or a semicolon would end the label."""


def test_the_page_is_what_the_generator_writes() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(), "The page is out of date; run `make docs`."


def test_every_transition_is_a_row_of_the_table_and_no_other() -> None:
    shown = [
        (action, frozenset(callers.split(", ")), source, target, event.replace("–", "") or None, archived)
        for action, callers, source, target, event, archived in table(PAGE, HEADINGS[0])
    ]
    assert shown == [(*row[:5], "yes" if row.from_archived else "no") for row in TRANSITIONS]


@pytest.mark.parametrize("row", TRANSITIONS, ids=lambda row: f"{row.action} from {row.source}")
def test_every_transition_is_on_an_arrow_of_the_picture(row: Transition) -> None:
    (label,) = _labels(row.source, row.target)
    assert row.action in label.split("<br/>")
    assert f"({row.event})" in label.split("<br/>") if row.event else "(" not in label


def test_the_picture_has_no_arrow_that_is_no_transition() -> None:
    shown = {(source, target) for source, target, _ in _arrows() if source != "[*]"}
    assert shown == {(row.source, row.target) for row in TRANSITIONS}


def test_a_unit_starts_available_or_unavailable() -> None:
    starts = [target for source, target, _ in _arrows() if source == "[*]"]
    assert starts == [Status.AVAILABLE, Status.UNAVAILABLE]


def _arrows() -> list[tuple[str, str, str]]:
    (diagram,) = (block.text for block in blocks(PAGE) if block.language == "mermaid")
    kind, direction, *lines = diagram.splitlines()
    assert (kind, direction.strip()) == ("stateDiagram-v2", "direction LR")
    found = [ARROW.fullmatch(line) for line in lines]
    assert None not in found
    return [(arrow[1], arrow[2], arrow[3]) for arrow in found if arrow]


def _labels(source: Status, target: Status) -> list[str]:
    return [label for start, end, label in _arrows() if (start, end) == (source, target)]
