"""What a floor plan is made of. All lengths are metres; x runs to the right, y downwards."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, StrEnum
from itertools import combinations
from typing import NamedTuple

OUTER_WALL = 0.25
INNER_WALL = 0.12


class Rect(NamedTuple):
    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return round(self.x + self.width, 4)

    @property
    def bottom(self) -> float:
        return round(self.y + self.height, 4)

    @property
    def area(self) -> float:
        return self.width * self.height


class Use(StrEnum):
    LIVING = "living"
    BEDROOM = "bedroom"
    BATHROOM = "bathroom"
    KITCHEN = "kitchen"
    HALL = "hall"
    SERVICE = "service"


class Room(NamedTuple):
    english: str
    arabic: str
    use: Use
    rects: tuple[Rect, ...]
    """More than one where the room goes around a corner."""
    label: tuple[float, float] | None = None
    """The middle of its name, where that is not the middle of the first rectangle."""


class Wall(Enum):
    """How a wall runs in the drawing."""

    ACROSS = "across"
    UPRIGHT = "upright"


class Opening(NamedTuple):
    """In the wall that runs along the line through x and y, from there on."""

    wall: Wall
    x: float
    y: float
    width: float


class Door(NamedTuple):
    opening: Opening
    hinged_at_end: bool = False
    swings_back: bool = False
    """Towards the smaller coordinate."""


class Pane(StrEnum):
    WINDOW = "window"
    SLIDING = "sliding"


class Window(NamedTuple):
    opening: Opening
    pane: Pane = Pane.WINDOW


class Piece(NamedTuple):
    """Of furniture. Its back is at the top before it is turned."""

    kind: str
    x: float
    y: float
    turn: int = 0
    """Clockwise, in degrees; x and y are the corner of the space it takes after that."""


class FloorPlan(NamedTuple):
    name: str
    english: str
    arabic: str
    width: float
    depth: float
    balcony: Rect
    balcony_name: tuple[str, str]
    rooms: tuple[Room, ...]
    doors: tuple[Door, ...]
    openings: tuple[Opening, ...]
    windows: tuple[Window, ...]
    pieces: tuple[Piece, ...]

    @property
    def area(self) -> float:
        """To the outer face of the walls, with the balcony: as it is sold."""
        return self.width * self.depth + self.balcony.area

    def inside(self, rect: Rect) -> Rect:
        """What is left of it between the walls."""
        left, right = self._inset(rect.x, self.width), self._inset(rect.right, self.width)
        top, bottom = self._inset(rect.y, self.depth), self._inset(rect.bottom, self.depth)
        return Rect(rect.x + left, rect.y + top, rect.width - left - right, rect.height - top - bottom)

    def net_area(self, room: Room) -> float:
        passages = sum(passage.area for passage in self.passages(room))
        return sum(self.inside(rect).area for rect in room.rects) + passages

    def passages(self, room: Room) -> Iterator[Rect]:
        """Where the parts of one room meet, there is no wall."""
        for one, other in combinations(room.rects, 2):
            yield from (self.gap(opening) for opening in self._between(one, other))

    def gap(self, opening: Opening) -> Rect:
        """What is taken out of a wall."""
        across = opening.wall is Wall.ACROSS
        at, end = (opening.y, self.depth) if across else (opening.x, self.width)
        before = 0.0 if at == 0 else (OUTER_WALL if at == end else INNER_WALL / 2)
        after = OUTER_WALL if at == 0 else (0.0 if at == end else INNER_WALL / 2)
        if across:
            return Rect(opening.x, at - before, opening.width, before + after)
        return Rect(at - before, opening.y, before + after, opening.width)

    def _between(self, one: Rect, other: Rect) -> Iterator[Opening]:
        first, second = (one, other) if (one.x, one.y) <= (other.x, other.y) else (other, one)
        if second.x == first.right:
            yield self._shared(Wall.UPRIGHT, second.x, (first.y, first.bottom), (second.y, second.bottom))
        for upper, lower in ((one, other), (other, one)):
            if lower.y == upper.bottom:
                yield self._shared(Wall.ACROSS, lower.y, (upper.x, upper.right), (lower.x, lower.right))

    def _shared(self, wall: Wall, at: float, one: tuple[float, float], other: tuple[float, float]) -> Opening:
        start, end = max(one[0], other[0]), min(one[1], other[1])
        across = wall is Wall.ACROSS
        far = self.width if across else self.depth
        start, end = start + self._inset(start, far), end - self._inset(end, far)
        x, y = (start, at) if across else (at, start)
        return Opening(wall, x, y, end - start)

    def _inset(self, at: float, far: float) -> float:
        return OUTER_WALL if at in (0, far) else INNER_WALL / 2


def across(x: float, y: float, width: float) -> Opening:
    return Opening(Wall.ACROSS, x, y, width)


def upright(x: float, y: float, width: float) -> Opening:
    return Opening(Wall.UPRIGHT, x, y, width)
