"""Furniture seen from above: each piece as paths in its own box, with its back at the top."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

_LARGE = 100


class Shape(NamedTuple):
    width: float
    height: float
    drawn: str


def box(x: float, y: float, width: float, height: float, radius: float = 0.0) -> str:
    if not radius:
        return line(f"M{n(x)} {n(y)}h{n(width)}v{n(height)}h-{n(width)}z")
    return f'<rect x="{n(x)}" y="{n(y)}" width="{n(width)}" height="{n(height)}" rx="{n(radius)}"/>'


def circle(x: float, y: float, radius: float) -> str:
    return f'<circle cx="{n(x)}" cy="{n(y)}" r="{n(radius)}"/>'


def oval(x: float, y: float, half_width: float, half_height: float) -> str:
    return f'<ellipse cx="{n(x)}" cy="{n(y)}" rx="{n(half_width)}" ry="{n(half_height)}"/>'


def line(path: str) -> str:
    return f'<path d="{path}"/>'


def n(value: float) -> str:
    """As short as it can be said: to the centimetre, and to a tenth of what is large."""
    said = f"{value:.1f}" if abs(value) >= _LARGE else f"{value:.2f}"
    return said.rstrip("0").rstrip(".").replace("0.", ".", 1 if abs(value) < 1 else 0) or "0"


def _bed(width: float) -> Shape:
    pillows = 2 if width > 1.3 else 1
    each = (width - 0.1 * (pillows + 1)) / pillows
    heads = "".join(box(0.1 + at * (each + 0.1), 0.12, each, 0.4, 0.08) for at in range(pillows))
    blanket = f"M0 .72H{n(width)}M0 .95L{n(width)} .95"
    return Shape(width, 2.1, box(0, 0, width, 2.1, 0.06) + heads + line(blanket))


def _wardrobe(width: float) -> Shape:
    hangers = "".join(f"M{n(at * 0.2 + 0.2)} .12l.08 .36" for at in range(int((width - 0.3) / 0.2)))
    return Shape(width, 0.6, box(0, 0, width, 0.6) + line(f"M.06 .3H{n(width - 0.06)}{hangers}"))


def _sofa(width: float) -> Shape:
    seats = max(1, round((width - 0.4) / 0.8))
    each = (width - 0.4) / seats
    cushions = "".join(box(0.2 + at * each, 0.25, each, 0.62, 0.07) for at in range(seats))
    return Shape(width, 0.92, box(0, 0, width, 0.92, 0.12) + cushions)


def _divan(length: float) -> Shape:
    seats = "".join(f"M{n(at * 0.8)} 0v.76" for at in range(1, round(length / 0.8)))
    return Shape(length, 0.76, box(0, 0, length, 0.76, 0.08) + line(f"M0 .24H{n(length)}{seats}"))


def _table(seats_along: int) -> Shape:
    length = 0.65 * seats_along + 0.1
    chairs = "".join(
        box(0.13 + at * 0.65, y, 0.44, 0.44, 0.1) for at in range(seats_along) for y in (0, 1.46)
    )
    return Shape(length, 1.9, chairs + box(0, 0.45, length, 1.0, 0.05))


def _kitchen(length: float) -> Shape:
    hob, sink = 0.15, (length - 0.1) / 2
    rings = "".join(circle(hob + dx, dy, 0.1) for dx in (0.15, 0.43) for dy in (0.17, 0.43))
    basins = box(sink - 0.25, 0.1, 0.5, 0.38, 0.06) + circle(sink, 0.05, 0.025)
    fridge = box(length - 0.7, 0, 0.7, 0.64) + line(f"M{n(length - 0.7)} 0l.7 .64m0 -.64l-.7 .64")
    top = box(0, 0, length, 0.6)
    return Shape(length, 0.64, top + box(hob, 0.04, 0.58, 0.52, 0.03) + rings + basins + fridge)


def _island(length: float) -> Shape:
    stools = "".join(circle(0.35 + at * 0.6, 1.08, 0.18) for at in range(int(length / 0.6)))
    return Shape(length, 1.26, stools + box(0, 0, length, 0.9, 0.04))


def _basin(width: float) -> Shape:
    bowls = [0.5] if width < 1.1 else [0.27, 0.73]
    drawn = "".join(oval(width * at, 0.27, 0.2, 0.15) + circle(width * at, 0.08, 0.025) for at in bowls)
    return Shape(width, 0.5, box(0, 0, width, 0.5, 0.04) + drawn)


def _shelf(length: float) -> Shape:
    return Shape(length, 0.4, box(0, 0, length, 0.4) + line(f"M0 0L{n(length)} .4M0 .4L{n(length)} 0"))


def _chairs_around() -> str:
    places = ((0.65, 0), (0.65, 1.3), (0, 0.65), (1.3, 0.65))
    return "".join(box(x, y, 0.4, 0.4, 0.1) for x, y in places)


_SIZED: dict[str, Callable[[float], Shape]] = {
    "bed": _bed, "wardrobe": _wardrobe, "sofa": _sofa, "divan": _divan, "kitchen": _kitchen,
    "island": _island, "basin": _basin, "shelf": _shelf,
}  # fmt: skip
_FIXED = {
    "night": Shape(0.5, 0.42, box(0, 0, 0.5, 0.42, 0.03) + circle(0.25, 0.21, 0.11)),
    "armchair": Shape(0.85, 0.85, box(0, 0, 0.85, 0.85, 0.14) + box(0.17, 0.22, 0.51, 0.58, 0.08)),
    "coffee": Shape(1.1, 0.6, box(0, 0, 1.1, 0.6, 0.08) + box(0.08, 0.08, 0.94, 0.44, 0.05)),
    "round": Shape(0.8, 0.8, circle(0.4, 0.4, 0.4) + circle(0.4, 0.4, 0.3)),
    "tv": Shape(1.8, 0.42, box(0, 0, 1.8, 0.42, 0.03) + box(0.3, 0.1, 1.2, 0.08)),
    "desk": Shape(
        1.3, 1.1, box(0.42, 0.56, 0.46, 0.46, 0.12) + box(0, 0, 1.3, 0.6) + box(0.4, 0.1, 0.5, 0.06)
    ),
    "wc": Shape(0.42, 0.68, box(0, 0, 0.42, 0.2, 0.04) + oval(0.21, 0.44, 0.18, 0.24)),
    "tub": Shape(
        1.7, 0.78, box(0, 0, 1.7, 0.78) + box(0.07, 0.07, 1.56, 0.64, 0.28) + circle(0.3, 0.39, 0.04)
    ),
    "shower": Shape(
        0.95,
        0.95,
        box(0, 0, 0.95, 0.95) + line("M0 0l.95 .95M.95 0l-.95 .95") + circle(0.475, 0.475, 0.09),
    ),
    "washer": Shape(0.62, 0.62, box(0, 0, 0.62, 0.62, 0.03) + circle(0.31, 0.33, 0.2) + line("M.06 .1h.5")),
    "table4": _table(2),
    "table6": _table(3),
    "table8": _table(4),
    "plant": Shape(0.6, 0.6, circle(0.3, 0.3, 0.3) + line("M.3 .02v.56M.02 .3h.56M.1 .1l.4 .4M.5 .1l-.4 .4")),
    "lounger": Shape(0.7, 1.9, box(0, 0, 0.7, 1.9, 0.08) + line("M0 .6h.7M.08 .1h.54")),
    "terrace": Shape(1.7, 1.7, _chairs_around() + circle(0.85, 0.85, 0.5)),
}


@cache
def shape_of(kind: str) -> Shape:
    """By its name, with its length behind it where there are several: ``bed-1.8``."""
    name, _, size = kind.partition("-")
    return _SIZED[name](float(size)) if size else _FIXED[name]
