"""What stands around a plan on its sheet: names, dimensions, scale, north."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from holdfast.demo.plans.furniture import n
from holdfast.demo.plans.model import FloorPlan, Room, Use
from holdfast.demo.plans.svg import path, text

WIDTH, HEIGHT = 1200, 900
MARGINS = (118, 104, 64, 118)
"""Left, top, right, bottom."""
_SIZES = (17, 15.5, 14, 12.5, 11.5, 10.5, 9.5)
_SMALL = 12.5
_PER_LETTER = 0.62
_MAIN = (Use.LIVING, Use.BEDROOM, Use.KITCHEN)
_CHAIN, _WHOLE = 30, 62
_TICK = 5


class Sheet(NamedTuple):
    """From metres to the sheet."""

    plan: FloorPlan
    scale: float
    left: float
    top: float

    @classmethod
    def of(cls, plan: FloorPlan) -> Sheet:
        left, top, right, bottom = MARGINS
        width, height = plan.width, plan.depth + plan.balcony.height
        room_x, room_y = WIDTH - left - right, HEIGHT - top - bottom
        scale = min(room_x / width, room_y / height)
        return cls(plan, scale, left + (room_x - scale * width) / 2, top + (room_y - scale * height) / 2)

    def x(self, metres: float) -> float:
        return self.left + self.scale * metres

    def y(self, metres: float) -> float:
        return self.top + self.scale * metres

    def labels(self) -> Iterator[str]:
        for room in self.plan.rooms:
            most = _SIZES[0] if room.use in _MAIN else _SMALL
            area = self.plan.net_area(room)
            yield self._label((room.english, room.arabic), area, *self._place(room), most)
        balcony = self.plan.balcony
        middle = balcony.x + balcony.width / 2, balcony.y + balcony.height / 2
        yield self._label(self.plan.balcony_name, balcony.area, *middle, balcony.width, _SMALL)

    def _place(self, room: Room) -> tuple[float, float, float]:
        inside = self.plan.inside(room.rects[0])
        middle = inside.x + inside.width / 2, inside.y + inside.height / 2
        return *(room.label or middle), inside.width

    def _label(
        self, names: tuple[str, str], area: float, x: float, y: float, width: float, most: float
    ) -> str:
        room = (self.scale * width - 8) / max(map(len, names)) / _PER_LETTER
        size = next((size for size in _SIZES if size <= min(room, most)), _SIZES[-1])
        lines = zip((*names, f"{area:.1f} m²"), ("name", "name", "area"), (-0.75, 0.45, 1.6), strict=True)
        said = "".join(text(0, size * at, line, look) for line, look, at in lines)
        place = f"translate({n(self.x(x))} {n(self.y(y))})"
        return f'<g transform="{place}" font-size="{n(size)}">{said}</g>'

    def dimensions(self) -> Iterator[str]:
        rects = [rect for room in self.plan.rooms for rect in room.rects]
        tops = sorted({0.0, self.plan.width, *(rect.x for rect in rects if rect.y == 0)})
        sides = sorted({0.0, self.plan.depth, *(rect.y for rect in rects if rect.x == 0)})
        yield from self._chain_across(tops, _CHAIN)
        yield from self._chain_across([0, self.plan.width], _WHOLE)
        yield from self._chain_upright(sides, _CHAIN)
        yield from self._chain_upright([0, self.plan.depth], _WHOLE)

    def _chain_across(self, stops: Sequence[float], distance: float) -> Iterator[str]:
        y = self.y(0) - distance
        marks = "".join(_tick(self.x(stop), y) + f"M{n(self.x(stop))} {n(y + 6)}v12" for stop in stops)
        yield path(f"M{n(self.x(stops[0]))} {n(y)}H{n(self.x(stops[-1]))}{marks}", "dim")
        for start, end in pairwise(stops):
            yield text(self.x((start + end) / 2), y - 5, f"{end - start:.2f}", "figure", 12)

    def _chain_upright(self, stops: Sequence[float], distance: float) -> Iterator[str]:
        x = self.x(0) - distance
        marks = "".join(_tick(x, self.y(stop)) + f"M{n(x + 6)} {n(self.y(stop))}h12" for stop in stops)
        yield path(f"M{n(x)} {n(self.y(stops[0]))}V{n(self.y(stops[-1]))}{marks}", "dim")
        for start, end in pairwise(stops):
            middle = self.y((start + end) / 2)
            said = text(0, 0, f"{end - start:.2f}", "figure", 12)
            yield f'<g transform="translate({n(x - 5)} {n(middle)}) rotate(-90)">{said}</g>'

    def scale_bar(self, x: float, y: float) -> str:
        """Five metres, the first in two colours by the metre."""
        step = self.scale
        dark = "".join(f"M{n(x + at * step)} {y}h{n(step)}v6h{n(-step)}z" for at in (0, 2, 4))
        numbers = "".join(text(x + at * step, y + 22, str(at), "figure", 12) for at in range(6))
        frame = path(f"M{n(x)} {y}h{n(5 * step)}v6h{n(-5 * step)}z", "dim")
        return frame + path(dark, "wall") + numbers + text(x + 5 * step + 22, y + 22, "m", "figure", 12)


def north(x: float, y: float) -> str:
    return (
        f'<g transform="translate({n(x)} {n(y)})"><circle class="dim" r="22"/>'
        + path("M0 -19L7 14L0 8L-7 14Z", "thin")
        + path("M0 -19L0 8L-7 14Z", "wall")
        + text(0, -28, "N", "name", 13)
        + "</g>"
    )


def title(plan: FloorPlan) -> Iterator[str]:
    left, right, line, below = MARGINS[0] - 62, WIDTH - 44, HEIGHT - 48, HEIGHT - 26
    area, (balcony, arabic) = f"{plan.area:.2f}", plan.balcony_name
    yield path(f"M{left} {HEIGHT - 78}H{right}", "dim")
    yield text(left, line, f"Narjis Heights · {plan.english}", "title")
    yield text(left, below, f"{area} m², to the outer face of the walls, {balcony.lower()} included", "note")
    yield text(right, line, f"مرتفعات النرجس · {plan.arabic}", "title arabic")
    yield text(right, below, f"{area} م² حتى الوجه الخارجي للجدران، شاملة ال{arabic}", "note arabic")


def _tick(x: float, y: float) -> str:
    """Across the line, as hand-drawn plans have it."""
    return f"M{n(x - _TICK)} {n(y + _TICK)}L{n(x + _TICK)} {n(y - _TICK)}"
