"""The two towers as they are seen from the street: as many floors and homes as the project has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast.demo.plans.furniture import n
from holdfast.demo.plans.sheet import HEIGHT, WIDTH
from holdfast.demo.plans.svg import FONT, text
from holdfast.demo.project import FLOORS, TOP_FLOOR, TOWERS

GROUND = 800
PODIUM = 66
STOREY = 46
BAY = 62
DEPTH = 34
"""Of the side that lies in the shade."""

_STYLE = f"""
text{{font-family:{FONT};text-anchor:middle;font-weight:650;fill:#fff}}
.stone{{fill:#efe6d6}}.shade{{fill:#cdbfa8}}.slab{{fill:#d9ccb6}}.frame{{fill:#6a5b49}}
.rail{{fill:#fff;fill-opacity:.55;stroke:#8c7c67;stroke-width:1}}
.day{{fill:url(#glass)}}.lit{{fill:#f8d99a}}.far{{fill:#c9d6d8}}.bush{{fill:#6f9a75}}.person{{fill:#3d4a47}}
.trunk{{stroke:#7c6a55;stroke-width:5;fill:none}}
.palm{{stroke:#4d7a5c;stroke-width:5;stroke-linecap:round;fill:none}}
.road{{fill:#8d9492}}.kerb{{fill:#d8d6cf}}.line{{stroke:#e9e7df;stroke-width:4;stroke-dasharray:46 34}}
"""
# A home from outside: a wide window behind a balcony, and a narrow one beside it behind a carved screen.
_BEHIND = (
    '<path class="frame" d="M5 8h36v33H5zM46 10h12v28H46z"/><path class="slab" d="M0 41h62v5H0z"/>'
    '<path fill="url(#screen)" d="M46 10h12v28H46z"/>'
)
_BEFORE = '<path class="rail" d="M2 28h42v13H2z"/>'
_DEFS = (
    '<linearGradient id="sky" x2="0" y2="1"><stop stop-color="#bcd8e6"/>'
    '<stop offset=".75" stop-color="#f6ead9"/></linearGradient>'
    '<linearGradient id="glass" x2="1" y2="1"><stop stop-color="#8fb3bf"/>'
    '<stop offset="1" stop-color="#5f8793"/></linearGradient>'
    '<pattern id="screen" width="10" height="10" patternUnits="userSpaceOnUse">'
    '<path d="M5 0L10 5L5 10L0 5Z" fill="none" stroke="#a8937a" stroke-width="1.6"/></pattern>'
    f'<g id="day">{_BEHIND}<path class="day" d="M7 10h15v31H7zM24 10h15v31H24z"/>{_BEFORE}</g>'
    f'<g id="lit">{_BEHIND}<path class="lit" d="M7 10h15v31H7z"/>'
    f'<path class="day" d="M24 10h15v31H24z"/>{_BEFORE}</g>'
    '<g id="palm"><path class="trunk" d="M0 0C-3 -30 3 -52 0 -84"/>'
    '<path class="palm" d="M0 -84q-26 -18 -44 6M0 -84q26 -18 44 6M0 -84q-18 -28 -40 -20'
    'M0 -84q18 -28 40 -20M0 -84q-6 -24 2 -34M0 -84q-24 2 -30 24M0 -84q24 2 30 24"/></g>'
    '<g id="person" class="person"><circle cy="-24" r="3.4"/><path d="M-4 0L-3.4 -19H3.4L4 0Z"/></g>'
)


class Tower(NamedTuple):
    name: str
    left: int
    bays: int

    @property
    def width(self) -> int:
        return self.bays * BAY

    @property
    def top(self) -> int:
        """Of the floor below the penthouses."""
        return GROUND - PODIUM - (FLOORS - 1) * STOREY


def elevation() -> str:
    towers = _towers()
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            "<title>Narjis Heights from the street | مرتفعات النرجس من الشارع</title>",
            f"<style>{_STYLE}</style><defs>{_DEFS}</defs>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="url(#sky)"/>',
            _skyline(),
            *(part for tower in towers for part in _tower(tower)),
            *_podium(towers),
            *_street(),
            "</svg>\n",
        ]
    )


def _towers() -> list[Tower]:
    left, towers = 190, []
    for name, homes in TOWERS.items():
        towers.append(Tower(name, left, len(homes)))
        left += towers[-1].width + 110
    return towers


def _tower(tower: Tower) -> Iterator[str]:
    base = GROUND - PODIUM
    yield _block(tower.left, tower.top, tower.width, base - tower.top)
    yield from _penthouses(tower)
    for storey in range(FLOORS - 1):
        for bay in range(tower.bays):
            yield _home(tower.left + bay * BAY, tower.top + storey * STOREY, _is_lit(tower, storey, bay))


def _penthouses(tower: Tower) -> Iterator[str]:
    """Set back behind their terraces, with planting at the edge."""
    inset, height = 30, STOREY + 8
    top, width = tower.top - height, tower.width - 2 * inset
    yield _block(tower.left + inset, top, width, height)
    each = width // len(TOP_FLOOR)
    for at in range(len(TOP_FLOOR)):
        x = tower.left + inset + at * each
        panes = "".join(
            f"M{x + 12 + pane * 24} {top + 12}h20v{height - 12}h-20z" for pane in range(each // 27)
        )
        yield f'<path class="day" d="{panes}"/>'
    yield f'<path class="slab" d="M{tower.left + inset - 12} {top - 7}h{width + 24}v9h-{width + 24}z"/>'
    bushes = "".join(
        f'<circle class="bush" cx="{tower.left + 8 + at * 22}" cy="{tower.top - 5}" r="9"/>'
        for at in range(tower.width // 22)
    )
    yield bushes + f'<path class="rail" d="M{tower.left} {tower.top - 14}h{tower.width}v14h-{tower.width}z"/>'


def _block(x: float, y: float, width: float, height: float) -> str:
    """The front in the sun, and the side in the shade."""
    front = f'<path class="stone" d="M{n(x)} {n(y)}h{n(width)}v{n(height)}h-{n(width)}z"/>'
    side = f"M{n(x + width)} {n(y)}l{DEPTH} -{DEPTH // 2}v{n(height)}l-{DEPTH} {DEPTH // 2}z"
    return f'<path class="shade" d="{side}"/>{front}'


def _home(x: int, y: int, is_lit: bool) -> str:
    return f'<use href="#{"lit" if is_lit else "day"}" x="{x}" y="{y}"/>'


def _is_lit(tower: Tower, storey: int, bay: int) -> bool:
    """Somebody is at home here and there, always in the same places."""
    return (storey * 31 + bay * 17 + storey * bay * 13 + tower.bays) % 11 in (0, 4)


def _podium(towers: list[Tower]) -> Iterator[str]:
    left, right = towers[0].left - 40, towers[-1].left + towers[-1].width + 40
    top = GROUND - PODIUM
    yield _block(left, top, right - left, PODIUM)
    yield f'<path class="slab" d="M{left - 8} {top - 6}h{right - left + 16}v10h-{right - left + 16}z"/>'
    panes = "".join(f"M{x} {top + 16}h40v{PODIUM - 16}h-40z" for x in range(left + 14, right - 44, 52))
    yield f'<path class="day" d="{panes}"/>'
    for tower in towers:
        middle, height = tower.left + tower.width / 2, PODIUM - 32
        yield f'<path class="frame" d="M{n(middle - 70)} {top + 8}h140v{PODIUM - 8}h-140z"/>'
        doors = f"M{n(middle - 60)} {top + 32}h56v{height}h-56zm64 0h56v{height}h-56z"
        yield f'<path class="lit" d="{doors}"/>'
        yield text(middle, top + 25, f"NARJIS {tower.name} · النرجس", "sign", 12)


def _skyline() -> str:
    heights = (60, 110, 80, 150, 95, 70, 180, 120, 66, 140, 90, 170, 75, 115, 60, 130, 85)
    blocks = "".join(f"M{at * 72} {GROUND}v-{height}h62v{height}z" for at, height in enumerate(heights))
    return f'<path class="far" d="{blocks}"/>'


def _street() -> Iterator[str]:
    yield f'<path class="kerb" d="M0 {GROUND}h{WIDTH}v26H0z"/>'
    yield f'<path class="road" d="M0 {GROUND + 26}h{WIDTH}v80H0z"/>'
    yield f'<path class="line" d="M0 {GROUND + 62}h{WIDTH}"/>'
    for x in range(20, WIDTH, 90):
        yield f'<ellipse class="bush" cx="{x}" cy="{GROUND + 2}" rx="20" ry="8"/>'
    for x in (70, 138, 612, 1060, 1120, 1170):
        yield f'<use href="#palm" x="{x}" y="{GROUND + 6}"/>'
    for x in (98, 318, 356, 520, 742, 905, 930, 1090):
        yield f'<use href="#person" x="{x}" y="{GROUND + 18}"/>'
