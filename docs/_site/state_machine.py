"""Writes docs/state-machine.md from the status table; ``make docs`` runs it."""

from collections.abc import Iterator
from pathlib import Path

from holdfast.domain.status import Status
from holdfast.domain.transitions import TRANSITIONS, Caller

PAGE = Path(__file__).parents[1] / "state-machine.md"
HEADINGS = ("Action", "By", "From", "To", "Event", "Also from archived")

# Mermaid lays a diagram out by the order of its arrows; in this one no label covers another.
LAID_OUT = (Status.AVAILABLE, Status.UNAVAILABLE, Status.SOLD, Status.RESERVED, Status.HELD)

TEMPLATE = """\
# The status machine

After reading this page, you can say which actions each status of a unit allows, who may perform them, and
which event each of them writes.

`make docs` generates this page from `domain/transitions.py`. Change the table there, not this page. The code,
the constraint in the database and this page follow that table, and tests compare them.

A unit has one of five statuses. Only the actions below change it; anything else is rejected with 409.

## The picture

Each arrow names its actions and, in brackets, the event.

```mermaid
{diagram}
```

A new unit is `available`, or `unavailable` if the request says so. Creating it does not change a status and
writes no event. An archived unit is `unavailable` and marked as archived; the last column of the table
lists the actions that are possible from there. A hold or a reservation lapses at its time. `extend`
moves that time and leaves the status as it is, so it writes no event.

## The table

There is one row for each status from which an action is possible. If callers may do different things, each
has its own row.

{table}
"""


def document() -> str:
    return TEMPLATE.format(diagram="\n".join(_diagram()), table="\n".join(_table()))


def _diagram() -> Iterator[str]:
    yield "stateDiagram-v2"
    yield "    direction LR"
    for start in (Status.AVAILABLE, Status.UNAVAILABLE):
        yield f"    [*] --> {start} : created"
    arrows = dict.fromkeys((row.source, row.target) for row in TRANSITIONS)
    for arrow in sorted(arrows, key=lambda found: LAID_OUT.index(found[0])):
        rows = [row for row in TRANSITIONS if (row.source, row.target) == arrow]
        words = (*(row.action for row in rows), *(f"({row.event})" for row in rows if row.event))
        yield f"    {arrow[0]} --> {arrow[1]} : {'<br/>'.join(dict.fromkeys(words))}"


def _table() -> Iterator[str]:
    yield f"| {' | '.join(HEADINGS)} |"
    yield "|---" * len(HEADINGS) + "|"
    for row in TRANSITIONS:
        callers = ", ".join(caller for caller in Caller if caller in row.callers)
        event = f"`{row.event}`" if row.event else "\N{EN DASH}"
        archived = "yes" if row.from_archived else "no"
        yield f"| `{row.action}` | {callers} | `{row.source}` | `{row.target}` | {event} | {archived} |"


if __name__ == "__main__":
    PAGE.write_text(document(), encoding="utf-8")
