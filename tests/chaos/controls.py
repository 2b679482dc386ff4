"""The controls: changes that break Holdfast, each of which a run must notice.

A control is applied to a copy of the source, by exact replacement: if the code no longer has the text, the
control says so instead of changing nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).parents[2] / "src"
SEED = 18
"""With it a worker is paused for longer than its leases last."""


class Edit(NamedTuple):
    path: str
    old: str
    new: str


class Control(NamedTuple):
    name: str
    edits: tuple[Edit, ...]
    fault: str
    """Under which it shows."""
    found_by: frozenset[str]
    """The invariants of which at least one is violated."""
    faults: int = 1
    """How many of it, one after the other."""
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
        "a worker is paused",
        frozenset({"I2", "I4"}),
        2,
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
        # Between loading and storing a unit there is time for another change.
        "the network delays every packet",
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
        "connections are cut after COMMIT",
        frozenset({"I1", "I5"}),
        4,
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
            # The feed goes as far as the last event that can be seen.
            Edit(
                "storage/events.py",
                '"select exists (select from event where position is null)"',
                '"select exists (select from event where position > (select last_position from event_feed))"',
            ),
            Edit(
                "storage/events.py",
                """    if count:
        await connection.execute("update event_feed set last_position = last_position + $1", count)
""",
                """    last = await connection.fetchval("select max(position) from event")
    await connection.execute("update event_feed set last_position = $1", last)
""",
            ),
            Edit(
                "storage/migrations/versions/0017_references_autovacuum.sql",
                "do $$ begin\n",
                "do $$ begin\ncreate sequence event_position;\n",
            ),
        ),
        # Numbers that were taken are lost with what was not committed.
        "the database crashes",
        frozenset({"I6"}),
        3,
    ),
    Control(
        "fsync=off under power loss",
        (),
        "the primary loses its power",
        frozenset({"I1", "I2"}),
        arguments=("--no-fsync",),
    ),
]


def apply(control: Control, folder: Path) -> Path:
    """Copy the source into the folder with the changes of the control; return what to put on the path."""
    copy = folder / "src"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in control.edits:
        path = copy / "holdfast" / edit.path
        text = path.read_text()
        assert text.count(edit.old) == 1, f"{edit.path} has changed: adapt {control.name!r}"
        path.write_text(text.replace(edit.old, edit.new))
    return copy
