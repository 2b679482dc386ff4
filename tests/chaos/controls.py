"""The controls: changes that break Holdfast, each of which a run must notice.

A control is applied to a copy of the source, by exact replacement: if the code no longer has the text, the
control says so instead of changing nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src"


class Edit(NamedTuple):
    path: str
    old: str
    new: str


class Control(NamedTuple):
    name: str
    edits: tuple[Edit, ...]
    faults: tuple[str, ...]
    """The faults under which it shows."""
    found_by: frozenset[str]
    """The invariants of which at least one is violated."""
    arguments: tuple[str, ...] = ()


CONTROLS = [
    Control(
        "no fencing token",
        (
            Edit(
                "storage/deliveries.py",
                "where in_flight.delivery_id = made.delivery_id and in_flight.token = made.token",
                "where in_flight.delivery_id = made.delivery_id",
            ),
        ),
        ("a worker is paused",),
        frozenset({"I2", "I4"}),
    ),
    Control(
        "no version check",
        (
            Edit(
                "storage/units.py",
                "where unit.id = written.id and unit.turn = written.found_turn and (",
                "where unit.id = written.id and (",
            ),
        ),
        ("duplicate requests",),
        frozenset({"I1", "I3"}),
    ),
    Control(
        "no look after an unknown commit",
        (
            Edit(
                "operations/write_path.py",
                """        with suppress(DatabaseUnavailable):
            await batch.find_stored(database)
        return batch.outcomes_or(unavailable)
""",
                "        return [None] * len(commands)\n",
            ),
        ),
        ("connection cut in COMMIT",),
        frozenset({"I1", "I5"}),
    ),
    Control(
        "events numbered before commit",
        (
            Edit(
                "storage/events.py",
                """insert into event ({_COLUMNS}, endpoint_ids)
        select {_COLUMNS}, array(select id from endpoint where {_WANTED})""",
                """insert into event ({_COLUMNS}, endpoint_ids, position)
        select {_COLUMNS}, array(select id from endpoint where {_WANTED}), nextval('event_position')""",
            ),
            Edit(
                "storage/events.py",
                '"select last_position, trimmed_position from event_feed"',
                '"select coalesce((select max(position) from event), 0), trimmed_position from event_feed"',
            ),
            Edit(
                "storage/migrations/versions/0017_references_autovacuum.sql",
                "",
                "\ncreate sequence event_position;\n",
            ),
        ),
        ("connection cut in COMMIT",),
        frozenset({"I6"}),
    ),
    Control(
        "fsync=off under power loss",
        (),
        ("power loss of the primary",),
        frozenset({"I1", "I2", "I8"}),
        ("--no-fsync",),
    ),
]


def apply(control: Control, folder: Path) -> Path:
    """Copy the source into the folder with the changes of the control; return what to put on the path."""
    copy = folder / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in control.edits:
        path = copy / "holdfast" / edit.path
        text = path.read_text()
        assert not edit.old or text.count(edit.old) == 1, f"{edit.path} has changed: adapt {control.name!r}"
        path.write_text(text.replace(edit.old, edit.new) if edit.old else text + edit.new)
    return copy
