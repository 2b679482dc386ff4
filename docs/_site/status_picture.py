"""Draws the one Mermaid diagram that the documents have, as a picture that needs no script.

Where the files are read as files, the host draws the diagram itself. An arrow that has no place here fails
the build, so the picture leaves none out.
"""

import re
from collections.abc import Iterator
from html import escape
from typing import NamedTuple

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

WIDTH, HEIGHT = 1000, 560
HALF_WIDTH, HALF_HEIGHT = 56, 20
PLACES = {
    "available": (110, 250),
    "held": (370, 250),
    "reserved": (630, 250),
    "sold": (890, 250),
    "unavailable": (500, 490),
}
_ARROW = re.compile(r"^\s+(\S+) --> (\S+) : (.+)$", re.MULTILINE)


class Way(NamedTuple):
    """How an arrow is drawn: where it leaves and arrives (from the middles of the boxes), how it is bent,
    and where its words stand."""

    start: tuple[int, int]
    end: tuple[int, int]
    bend: tuple[int, int]
    words: tuple[int, int]


WAYS = {
    ("[*]", "available"): Way((-70, -70), (-30, -20), (0, 0), (44, 168)),
    ("[*]", "unavailable"): Way((-150, 40), (-56, 6), (0, 0), (318, 538)),
    ("available", "held"): Way((56, 0), (-56, 0), (0, 0), (240, 224)),
    ("held", "reserved"): Way((56, 0), (-56, 0), (0, 0), (500, 224)),
    ("reserved", "sold"): Way((56, 0), (-56, 0), (0, 0), (760, 224)),
    ("held", "available"): Way((-20, -20), (30, -20), (0, -110), (262, 158)),
    ("reserved", "available"): Way((-20, -20), (5, -20), (0, -220), (372, 98)),
    ("available", "sold"): Way((-15, -20), (0, -20), (0, -400), (500, 32)),
    ("available", "unavailable"): Way((-10, 20), (-56, -8), (-110, 60), (140, 424)),
    ("unavailable", "available"): Way((-40, -20), (30, 20), (-20, -20), (300, 330)),
    ("held", "unavailable"): Way((0, 20), (-10, -20), (-20, 10), (430, 385)),
    ("reserved", "unavailable"): Way((0, 20), (20, -20), (20, 10), (620, 385)),
    ("sold", "unavailable"): Way((0, 20), (56, 0), (120, 60), (830, 424)),
}
LOOPS = {"held": (412, 306), "reserved": (684, 306), "unavailable": (660, 520)}


class Mermaid(Directive):
    has_content = True

    def run(self) -> list[nodes.Node]:
        picture = f'<div class="status-picture">{drawn(chr(10).join(self.content))}</div>'
        return [nodes.raw("", picture, format="html")]


def drawn(diagram: str) -> str:
    """The diagram of the statuses as SVG."""
    parts = [*map(_arrow, _ARROW.findall(diagram)), *map(_box, PLACES), *_words(diagram)]
    named = 'role="img" aria-label="The statuses of a unit and the actions between them"'
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" {named}>{_TIP}{"".join(parts)}</svg>'


_TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8"'
    ' orient="auto">'
    '<path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>'
)


def _box(status: str) -> str:
    x, y = PLACES[status]
    size = f'width="{2 * HALF_WIDTH}" height="{2 * HALF_HEIGHT}"'
    rectangle = f'<rect class="box is-{status}" x="{x - HALF_WIDTH}" y="{y - HALF_HEIGHT}" {size} rx="8"/>'
    return f'{rectangle}<text x="{x}" y="{y + 5}" text-anchor="middle" font-size="17">{status}</text>'


def _arrow(arrow: tuple[str, str, str]) -> str:
    source, target, _ = arrow
    course = _loop(source) if source == target else _course(source, target)
    return f'<path class="arrow" marker-end="url(#tip)" d="{course}"/>'


def _loop(status: str) -> str:
    x, y = PLACES[status]
    right, low = x + HALF_WIDTH, y + HALF_HEIGHT
    return f"M{right} {y + 6} c26 0 26 40 -16 {low - y + 14} c-16 4 -16 -12 -16 -20"


def _course(source: str, target: str) -> str:
    way = WAYS[source, target]
    end_x, end_y = _shifted(PLACES[target], way.end)
    start_x, start_y = _shifted(PLACES[target if source == "[*]" else source], way.start)
    middle_x, middle_y = _shifted(((start_x + end_x) // 2, (start_y + end_y) // 2), way.bend)
    return f"M{start_x} {start_y} Q{middle_x} {middle_y} {end_x} {end_y}"


def _shifted(place: tuple[int, int], by: tuple[int, int]) -> tuple[int, int]:
    return place[0] + by[0], place[1] + by[1]


def _words(diagram: str) -> Iterator[str]:
    for source, target, label in _ARROW.findall(diagram):
        x, y = LOOPS[source] if source == target else WAYS[source, target].words
        for at, line in enumerate(_lines(label)):
            kind = "paper event" if line.startswith("(") else "paper"
            place = f'x="{x}" y="{y + 17 * at}" text-anchor="middle" font-size="14"'
            yield f'<text class="{kind}" {place}>{escape(line)}</text>'


def _lines(label: str) -> list[str]:
    """The actions on one line, their events below."""
    parts = label.split("<br/>")
    actions = " · ".join(part for part in parts if not part.startswith("("))
    return [actions, *(part for part in parts if part.startswith("("))]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True}
