"""Writes docs/state-machine.md from the status table; ``make docs`` runs it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from holdfast.domain.event import EventName
from holdfast.domain.status import TRANSITIONS, Action, Caller, Status, Transition
from tests.docs.documents import ROOT

PAGE = ROOT / "docs" / "state-machine.md"
HEADINGS = ("Action", "By", "From", "To", "Event", "Also from archived")

Arrow = tuple[Status, Status, EventName | None]

# Mermaid lays a diagram out by the order of its arrows; in this one no label covers another.
LAID_OUT = (Status.AVAILABLE, Status.UNAVAILABLE, Status.SOLD, Status.RESERVED, Status.HELD)

TEMPLATE = """\
# The status machine

Generated from `domain/status.py` by `make docs`. Change the table there, not this page.

A unit has one of five statuses. It changes by the actions below and in no other way; anything else is
refused. The code, the database's own constraint and this page follow one table, and tests hold them together.

## The picture

Each arrow names its actions and, in brackets, the event that they write.

```mermaid
{diagram}
```

A new unit starts as `available` or, if its creator says so, as `unavailable`. Creation is no change of status
and writes no event. An archived unit is `unavailable` with a mark on it, and hardly anything starts from
there: the last column of the table says what does. A hold or a reservation lapses by itself at its time.
`extend` moves that time and leaves the status as it is, so it writes no event.

## The table

One row for each status that an action starts from. Where callers differ in what they may do, each has a row.

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


def arrows() -> dict[Arrow, list[Action]]:
    """The actions of each arrow, once each and in the order of the table."""
    found: defaultdict[Arrow, dict[Action, None]] = defaultdict(dict)
    for row in TRANSITIONS:
        found[row.source, row.target, row.event][row.action] = None
    return {arrow: list(actions) for arrow, actions in found.items()}


def line(arrow: Arrow, actions: Iterable[Action]) -> str:
    source, target, event = arrow
    label = [*actions, f"({event})"] if event else [*actions]
    return f"    {source} --> {target} : {'<br/>'.join(label)}"


def _diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield "    direction LR"
    for start in (Status.AVAILABLE, Status.UNAVAILABLE):
        yield f"    [*] --> {start} : created"
    for arrow, actions in sorted(arrows().items(), key=lambda found: LAID_OUT.index(found[0][0])):
        yield line(arrow, actions)


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
