"""The output of the simulation: lines or a table while it runs, and the totals."""

from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.simulation.state import ActivityEntry, SimulationState

# Counted events: their names in JSON and for people.
COUNTS = {
    "holds": "holds",
    "racesLost": "races lost",
    "signed": "signed",
    "deposits": "deposits",
    "sales": "sales",
    "cancelled": "cancelled",
    "lapsed": "lapsed",
    "releasedAtEnd": "released at the end",
    "leftWithoutUnit": "left without a unit",
    "depositsRepeated": "deposits reported twice",
    "depositsLate": "late deposits",
    "withdrawn": "withdrawn",
    "refunds": "refunds",
    "extended": "extended",
    "offSale": "taken off sale",
    "priceChanges": "prices raised",
    "descriptions": "descriptions changed",
    "sentAgain": "sent again",
}
_ALWAYS_SHOWN = ("holds", "racesLost", "signed", "deposits", "sales")
LINES_PER_SECOND = 10
_OTHER_TABLE_LINES = 9
_MIN_ROWS, _MAX_ACTORS, _MAX_ENTRIES = 3, 15, 10


class LinePrinter:
    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._second = 0
        self._entries = 0

    def __call__(self, entry: ActivityEntry) -> None:
        if int(entry.seconds) != self._second:
            self.close()
            self._second, self._entries = int(entry.seconds), 0
        self._entries += 1
        if self._entries <= LINES_PER_SECOND:
            self._write(f"{format_clock(entry.seconds)}  {entry.actor:<20}  {entry.text}")

    def close(self) -> None:
        if self._entries > LINES_PER_SECOND:
            self._write(f"{'':7}and {self._entries - LINES_PER_SECOND} more")


def format_clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:02}:{rest:02}"


def render_table(state: SimulationState, height: int) -> RenderableType:
    client = state.client
    room = max(2 * _MIN_ROWS, height - _OTHER_TABLE_LINES)
    entry_rows = min(_MAX_ENTRIES, max(_MIN_ROWS, room // 2))
    actor_rows = min(_MAX_ACTORS, max(_MIN_ROWS, room - entry_rows))
    name = state.project.latin_name
    title = f"{name} at {client.url}  {format_clock(state.elapsed())}  Ctrl-C stops it"
    names = [name for name in COUNTS if name in _ALWAYS_SHOWN or state.counts[name]]
    counts = " · ".join(f"{COUNTS[name]} {state.counts[name]}" for name in names)
    errors = " · ".join(f"{problem} {count}" for problem, count in sorted(state.errors.items()))
    speed = f"{client.requests_per_second:.0f} requests/s · slowest {client.slowest_ms:.0f} ms"
    entries = Table(box=None, pad_edge=False, show_header=False)
    for _ in range(3):
        entries.add_column(no_wrap=True, overflow="ellipsis")
    for entry in list(state.entries)[-entry_rows:]:
        entries.add_row(format_clock(entry.seconds), entry.actor, Text(entry.text))
    return Group(
        Text(title, style="bold", no_wrap=True, overflow="ellipsis"),
        _render_actors(state, actor_rows),
        Text(f"\n{counts}\nrejected: {errors or 'none'}\n{speed}\n"),
        entries,
    )


def _render_actors(state: SimulationState, limit: int) -> Table:
    table = Table(box=None, pad_edge=False, expand=True)
    for heading, ratio in (("WHO", 3), ("UNIT", 1), ("NOW", 3), ("HOLD ENDS IN", 2)):
        table.add_column(heading, ratio=ratio, no_wrap=True, overflow="ellipsis")
    for actor, (text, booking) in list(state.current.items())[:limit]:
        countdown = ""
        if booking is not None and booking.is_held and booking.expires_at is not None:
            countdown = format_clock(max(0.0, booking.expires_at - state.elapsed()))
        table.add_row(actor, Text(booking.code if booking else ""), text, countdown)
    if len(state.current) > limit:
        table.add_row(f"and {len(state.current) - limit} more")
    return table


def format_totals(totals: Mapping[str, Any]) -> list[str]:
    after = f"after {totals['seconds']:.0f} s"
    ending = {
        "finished": f"All {totals['buyers']} buyers have finished {after}.",
        "stopped": f"Stopped {after}; all holds are cancelled.",
        "too-long": f"Ended {after}, the longest that it may take; all holds are cancelled.",
        "failed": f"Ended {after}, before the buyers had finished.",
    }[totals["ended"]]
    counts = {text: totals[name] for name, text in COUNTS.items() if totals[name]}
    lines = [ending, _format_counts("Counted", counts)]
    for title, name in (("Rejected", "refusals"), ("Bookings", "bookings")):
        if totals[name]:
            lines.append(_format_counts(title, totals[name]))
    rate = totals["requests"] / max(totals["seconds"], 0.1)
    lines.append(
        f"{totals['requests']} requests, {rate:.1f} a second; the slowest took {totals['slowestMs']:.0f} ms."
    )
    if totals["brokenPromises"]:
        return [*lines, "A promise was broken:", *totals["brokenPromises"]]
    if not totals["unitsChecked"]:
        return [*lines, "No unit was held, so there is no promise to check."]
    return [*lines, f"No unit was held twice: the histories of {totals['unitsChecked']} units agree."]


def _format_counts(title: str, counts: Mapping[str, int]) -> str:
    return f"{title}: " + (", ".join(f"{name} {count}" for name, count in counts.items()) or "none") + "."
