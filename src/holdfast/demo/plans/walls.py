"""Walls, doors and windows as an architect draws them, in metres."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.demo.plans.furniture import n
from holdfast.demo.plans.model import OUTER_WALL, Door, FloorPlan, Pane, Rect, Use, Wall, Window
from holdfast.demo.plans.svg import path

_WET = (Use.BATHROOM, Use.SERVICE, Use.KITCHEN)


def drawn_walls(plan: FloorPlan) -> Iterator[str]:
    """Everything is wall first; then the rooms are taken out of it, and the openings out of what is left."""
    yield path(_outline(Rect(0, 0, plan.width, plan.depth)), "wall")
    for look, is_wet in (("floor", False), ("tiled", True)):
        rooms = [room for room in plan.rooms if (room.use in _WET) is is_wet]
        yield path(_outlines(plan.inside(rect) for room in rooms for rect in room.rects), look)
        yield path(_outlines(_seamless(gap) for room in rooms for gap in plan.passages(room)), look)
    openings = (*plan.openings, *(door.opening for door in plan.doors))
    yield path(_outlines(_seamless(plan.gap(opening)) for opening in openings), "floor")
    yield path("".join(_swing(plan, door) for door in plan.doors), "thin")
    yield path("".join(_leaf(plan, door) for door in plan.doors), "leaf")
    yield path(_outlines(plan.gap(window.opening) for window in plan.windows), "glass")
    yield path("".join(_panes(plan.gap(window.opening), window) for window in plan.windows), "thin")


def drawn_balcony(plan: FloorPlan) -> str:
    rect = plan.balcony
    rail = Rect(rect.x + 0.06, rect.y, rect.width - 0.12, rect.height - 0.06)
    floor = _outline(rect)
    return path(floor, "deck") + path(floor, "planks") + path(floor + _outline(rail), "rail")


def swept(plan: FloorPlan, door: Door) -> Rect:
    """The square that a door needs to swing in."""
    face, width, opening = _face(plan, door), door.opening.width, door.opening
    start = face - width if door.swings_back else face
    if opening.wall is Wall.ACROSS:
        return Rect(opening.x, start, width, width)
    return Rect(start, opening.y, width, width)


def _leaf(plan: FloorPlan, door: Door) -> str:
    (x0, y0), (x1, y1), _ = _corners(plan, door)
    return f"M{n(x0)} {n(y0)}L{n(x1)} {n(y1)}"


def _swing(plan: FloorPlan, door: Door) -> str:
    _, (x1, y1), (x2, y2) = _corners(plan, door)
    is_across, radius = door.opening.wall is Wall.ACROSS, n(door.opening.width)
    turns_right = is_across == (door.hinged_at_end == door.swings_back)
    return f"M{n(x1)} {n(y1)}A{radius} {radius} 0 0 {int(not turns_right)} {n(x2)} {n(y2)}"


def _corners(plan: FloorPlan, door: Door) -> list[tuple[float, float]]:
    """The hinge, the tip of the open leaf, and where it closes."""
    opening, face = door.opening, _face(plan, door)
    is_across = opening.wall is Wall.ACROSS
    start = opening.x if is_across else opening.y
    ends = (start, start + opening.width)
    hinge, latch = reversed(ends) if door.hinged_at_end else ends
    tip = face - opening.width if door.swings_back else face + opening.width
    points = [(hinge, face), (hinge, tip), (latch, face)]
    return points if is_across else [(y, x) for x, y in points]


def _face(plan: FloorPlan, door: Door) -> float:
    """The side of the wall that the door opens from."""
    gap = plan.gap(door.opening)
    if door.opening.wall is Wall.ACROSS:
        return gap.y if door.swings_back else gap.bottom
    return gap.x if door.swings_back else gap.right


def _panes(gap: Rect, window: Window) -> str:
    """One pane in the middle of the wall, or two that slide past each other."""
    is_across, length = window.opening.wall is Wall.ACROSS, window.opening.width
    start, wall = (gap.x, gap.y) if is_across else (gap.y, gap.x)
    middle, overlap = wall + OUTER_WALL / 2, length / 2 + 0.06
    if window.pane is Pane.WINDOW:
        lines = [(start, length, middle - 0.03), (start, length, middle + 0.03)]
    else:
        lines = [(start, overlap, middle - 0.035), (start + length - overlap, overlap, middle + 0.035)]
    return "".join(
        f"M{n(at)} {n(level)}h{n(run)}" if is_across else f"M{n(level)} {n(at)}v{n(run)}"
        for at, run, level in lines
    )


def _seamless(rect: Rect) -> Rect:
    """A little larger, or a hair of the wall would show."""
    return Rect(rect.x - 0.01, rect.y - 0.01, rect.width + 0.02, rect.height + 0.02)


def _outlines(rects: Iterable[Rect]) -> str:
    return "".join(map(_outline, rects))


def _outline(rect: Rect) -> str:
    width = n(rect.width)
    return f"M{n(rect.x)} {n(rect.y)}h{width}v{n(rect.height)}h-{width}z"
