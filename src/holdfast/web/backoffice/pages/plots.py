"""The geometry of plots: a picture of a thousand by three hundred, which pages stretch as they need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

WIDTH = 1000
HEIGHT = 300

Number = float


class Area(NamedTuple):
    name: str
    path: str


class Bar(NamedTuple):
    x: float
    y: float
    width: float
    height: float


def top_of(highest: Number) -> int:
    """A round number that is not lower: 1, 2, 4, 5 or 10 with zeros behind it; each has a half or is one."""
    step = 1
    while True:
        for factor in (1, 2, 4, 10):
            if factor * step >= highest:
                return factor * step
        step *= 10


def areas(series: Sequence[tuple[str, Sequence[Number]]], top: Number) -> list[Area]:
    """Upon each other, the first at the bottom."""
    floor: list[Number] = [0.0] * len(series[0][1])
    drawn = []
    for name, values in series:
        ceiling = [below + value for below, value in zip(floor, values, strict=True)]
        points = [*_points(ceiling, top), *reversed(_points(floor, top))]
        drawn.append(Area(name, "M" + "L".join(points) + "Z"))
        floor = ceiling
    return drawn


def bars(values: Sequence[Number], top: Number) -> list[Bar]:
    width = WIDTH / (len(values) or 1)
    return [
        Bar(
            round(at * width + width * 0.12, 2),
            round(HEIGHT - HEIGHT * value / top, 2),
            round(width * 0.76, 2),
            round(HEIGHT * value / top, 2),
        )
        for at, value in enumerate(values)
        if value
    ]


def _points(values: Sequence[Number], top: Number) -> list[str]:
    last = max(len(values) - 1, 1)
    return [
        f"{round(WIDTH * at / last, 2):g} {round(HEIGHT - HEIGHT * value / top, 2):g}"
        for at, value in enumerate(values)
    ]
