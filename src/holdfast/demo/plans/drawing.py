"""A floor plan as a sheet of SVG."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.demo.plans.furniture import n, shape_of
from holdfast.demo.plans.model import FloorPlan, Piece
from holdfast.demo.plans.sheet import HEIGHT, WIDTH, Sheet, north, title
from holdfast.demo.plans.svg import FONT
from holdfast.demo.plans.walls import drawn_balcony, drawn_walls

_STYLE = f"""
text{{font-family:{FONT};fill:#26312f;text-anchor:middle}}
.sheet{{fill:#fcfbf8}}
.wall{{fill:#33403d}}.floor{{fill:#fff}}.tiled{{fill:url(#tiles)}}.deck{{fill:#f3efe6}}.planks{{fill:url(#planks)}}
.glass{{fill:#dcecf2}}.rail{{fill:none;stroke:#33403d;stroke-width:.03}}
.thin{{fill:none;stroke:#55625e;stroke-width:.022}}.leaf{{stroke:#33403d;stroke-width:.05}}
.things{{fill:#f7f4ec;stroke:#9aa6a2;stroke-width:.022}}
.name{{font-weight:600;paint-order:stroke;stroke:#fff;stroke-width:4;stroke-linejoin:round}}
.figure{{fill:#55625e;paint-order:stroke;stroke:#fff;stroke-width:3;stroke-linejoin:round}}
.area{{fill:#55625e;font-size:.86em;paint-order:stroke;stroke:#fff;stroke-width:3;stroke-linejoin:round}}
.dim{{fill:none;stroke:#7d8a86;stroke-width:1}}.around .thin{{stroke-width:1}}
.title{{font-size:20px;font-weight:650;text-anchor:start}}.note{{font-size:13.5px;fill:#55625e;text-anchor:start}}
.arabic{{direction:rtl}}
"""
_PATTERNS = (
    '<pattern id="tiles" width=".3" height=".3" patternUnits="userSpaceOnUse">'
    '<path fill="#fff" d="M0 0H.3V.3H0z"/>'
    '<path d="M0 0H.3M0 0V.3" fill="none" stroke="#c9dbe0" stroke-width=".015"/></pattern>'
    '<pattern id="planks" width="1" height=".14" patternUnits="userSpaceOnUse">'
    '<path d="M0 0H1" stroke="#ded5c2" stroke-width=".02"/></pattern>'
)


def drawn(plan: FloorPlan) -> str:
    sheet = Sheet.of(plan)
    kinds = list(dict.fromkeys(piece.kind for piece in plan.pieces))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{plan.english} | {plan.arabic}</title>",
            f"<style>{_STYLE}</style>",
            f"<defs>{_PATTERNS}{''.join(_shapes(kinds))}</defs>",
            f'<rect class="sheet" width="{WIDTH}" height="{HEIGHT}"/>',
            f'<g transform="translate({n(sheet.left)} {n(sheet.top)}) scale({n(sheet.scale)})">',
            drawn_balcony(plan),
            *drawn_walls(plan),
            '<g class="things">',
            *(_placed(piece, kinds.index(piece.kind)) for piece in plan.pieces),
            "</g></g>",
            '<g class="around">',
            *sheet.labels(),
            *sheet.dimensions(),
            north(WIDTH - 66, 74),
            sheet.scale_bar(WIDTH / 2 - 2.5 * sheet.scale, HEIGHT - 106),
            *title(plan),
            "</g></svg>\n",
        ]
    )


def _shapes(kinds: Sequence[str]) -> Iterator[str]:
    for number, kind in enumerate(kinds):
        yield f'<g id="p{number}">{shape_of(kind).drawn}</g>'


def _placed(piece: Piece, number: int) -> str:
    shape = shape_of(piece.kind)
    dx, dy = {0: (0, 0), 90: (shape.height, 0), 180: (shape.width, shape.height), 270: (0, shape.width)}[
        piece.turn
    ]
    x, y = n(piece.x + dx), n(piece.y + dy)
    if not piece.turn:
        return f'<use href="#p{number}" x="{x}" y="{y}"/>'
    return f'<use href="#p{number}" transform="translate({x} {y})rotate({piece.turn})"/>'
