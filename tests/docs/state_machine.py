"""Writes docs/state-machine.md from the status table; ``make docs`` runs it."""

from collections.abc import Iterable, Iterator

from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Caller, Transition
from tests.docs.documents import ROOT

PAGE = ROOT / "docs" / "state-machine.md"
HEADINGS = ("Action", "By", "From", "To", "Event", "Also from archived")

Arrow = tuple[Status, Status]

# Mermaid lays a diagram out by the order of its arrows; in this one no label covers another.
LAID_OUT = (Status.AVAILABLE, Status.UNAVAILABLE, Status.SOLD, Status.RESERVED, Status.HELD)

TEMPLATE = """\
# The status machine

Generated from `domain/transitions.py` by `make docs`. Change the table there, not this page.

A unit has one of five statuses. Only the actions below change it; anything else is rejected with 409.
The code, the constraint in the database and this page follow one table, and tests compare them.

## The picture

Each arrow names its actions and, in brackets, the event.

```mermaid
{diagram}
```

A new unit is `available`, or `unavailable` if the request says so. Creation is no change of status and
writes no event. An archived unit is `unavailable` and marked as archived; the last column of the table
lists the actions that are possible from there. A hold or a reservation lapses at its time. `extend`
moves that time and leaves the status as it is, so it writes no event.

## The table

There is one row for each status from which an action is possible. If callers may do different things,
each has a row.

{table}
"""


def document() -> str:
    return TEMPLATE.format(diagram="\n".join(_diagram()), table="\n".join(_table()))


def cells(row: Transition) -> list[str]:
    """A transition as a row of the table."""
    return [
        _code(row.action),
        ", ".join(caller for caller in Caller if caller in row.callers),
        _code(row.source),
        _code(row.target),
        _code(row.event) if row.event else "–",
        "yes" if row.from_archived else "no",
    ]


def arrows() -> dict[Arrow, list[str]]:
    """The label of each arrow: its actions, then its events, once each and in the order of the table."""
    found: dict[Arrow, list[str]] = {}
    for arrow in dict.fromkeys((row.source, row.target) for row in TRANSITIONS):
        rows = [row for row in TRANSITIONS if (row.source, row.target) == arrow]
        words = (*(row.action for row in rows), *(f"({row.event})" for row in rows if row.event))
        found[arrow] = list(dict.fromkeys(words))
    return found


def line(arrow: Arrow, label: Iterable[str]) -> str:
    source, target = arrow
    return f"    {source} --> {target} : {'<br/>'.join(label)}"


def _diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield "    direction LR"
    for start in (Status.AVAILABLE, Status.UNAVAILABLE):
        yield f"    [*] --> {start} : created"
    for arrow, label in sorted(arrows().items(), key=lambda found: LAID_OUT.index(found[0][0])):
        yield line(arrow, label)


def _table() -> Iterator[str]:
    yield _row(HEADINGS)
    yield "|---" * len(HEADINGS) + "|"
    for row in TRANSITIONS:
        yield _row(cells(row))


def _row(texts: Iterable[str]) -> str:
    return f"| {' | '.join(texts)} |"


def _code(text: str) -> str:
    return f"`{text}`"


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
