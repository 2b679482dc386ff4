"""The drawings of the demo are plans that could be built: what they show is what is sold."""

from decimal import Decimal
from itertools import combinations
from xml.etree import ElementTree

import pytest

from holdfast.demo.plans.drawings import PLANS, drawings
from holdfast.demo.plans.furniture import shape_of
from holdfast.demo.plans.model import FloorPlan, Opening, Pane, Piece, Rect, Room, Use, Wall
from holdfast.demo.plans.walls import swept
from holdfast.demo.project import HOMES
from holdfast.web.pages.templates import STATIC

LARGEST = 20 * 1024
HAIR = 0.03
HOME_OF = {home.drawing: home for home in HOMES}

every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.name)


@pytest.mark.parametrize("name", drawings())
def test_a_drawing_is_the_file_that_is_served_and_light(name: str) -> None:
    """`make drawings` writes them anew."""
    text = (STATIC / "demo" / name).read_text()
    assert text == drawings()[name]
    assert len(text.encode()) <= LARGEST
    assert ElementTree.fromstring(text).tag.endswith("svg")
    assert "<script" not in text


@every_plan
def test_a_plan_has_the_area_and_the_rooms_that_are_sold(plan: FloorPlan) -> None:
    home = HOME_OF[plan.name]
    assert (plan.english, plan.arabic) == (home.english, home.arabic)
    assert Decimal(f"{plan.area:.4f}") == home.area_sqm
    uses = [room.use for room in plan.rooms]
    assert uses.count(Use.BEDROOM) == home.bedrooms
    assert uses.count(Use.BATHROOM) == home.bathrooms


@every_plan
def test_rooms_fill_the_plan_and_share_nothing(plan: FloorPlan) -> None:
    rects = [rect for room in plan.rooms for rect in room.rects]
    assert sum(rect.area for rect in rects) == pytest.approx(plan.width * plan.depth)
    assert not [pair for pair in combinations(rects, 2) if overlap(*pair)]


@every_plan
def test_every_room_can_be_reached_from_the_front_door(plan: FloorPlan) -> None:
    passages = [*plan.openings, *(door.opening for door in plan.doors)]
    reached = {
        room for room in plan.rooms if any(leads_to(plan, way, room) for way in passages if way.y == 0)
    }
    assert len(reached) == 1
    while more := {
        room
        for room in set(plan.rooms) - reached
        if any(
            leads_to(plan, way, room) and leads_to(plan, way, other) for way in passages for other in reached
        )
    }:
        reached |= more
    assert [room.english for room in plan.rooms if room not in reached] == []


@every_plan
def test_whoever_lives_or_sleeps_somewhere_has_daylight(plan: FloorPlan) -> None:
    lit = {room for room in plan.rooms for window in plan.windows if leads_to(plan, window.opening, room)}
    assert not [room for room in plan.rooms if room.use in (Use.LIVING, Use.BEDROOM) and room not in lit]
    out = [window.opening for window in plan.windows if window.pane is Pane.SLIDING]
    assert all(opening.y == plan.depth == plan.balcony.y for opening in out)


@every_plan
def test_furniture_stands_in_rooms_and_in_nobodys_way(plan: FloorPlan) -> None:
    spaces = [plan.balcony, *(plan.inside(rect) for room in plan.rooms for rect in room.rects)]
    boxes = {piece: box_of(piece) for piece in plan.pieces}
    assert not [piece for piece, box in boxes.items() if not any(within(box, space) for space in spaces)]
    assert not [pair for pair in combinations(boxes, 2) if overlap(boxes[pair[0]], boxes[pair[1]])]
    swings = [swept(plan, door) for door in plan.doors]
    assert not [piece for piece, box in boxes.items() for swing in swings if overlap(box, swing)]
    assert not [pair for pair in combinations(swings, 2) if overlap(*pair)]


def leads_to(plan: FloorPlan, opening: Opening, room: Room) -> bool:
    gap = plan.gap(opening)
    across = opening.wall is Wall.ACROSS
    reach = 0.2
    wide = (
        Rect(gap.x, gap.y - reach, gap.width, gap.height + 2 * reach)
        if across
        else Rect(gap.x - reach, gap.y, gap.width + 2 * reach, gap.height)
    )
    return any(overlap(wide, plan.inside(rect)) for rect in room.rects)


def box_of(piece: Piece) -> Rect:
    shape = shape_of(piece.kind)
    turned = piece.turn in (90, 270)
    width, height = (shape.height, shape.width) if turned else (shape.width, shape.height)
    return Rect(piece.x, piece.y, width, height)


def overlap(one: Rect, other: Rect) -> bool:
    across = min(one.right, other.right) - max(one.x, other.x)
    down = min(one.bottom, other.bottom) - max(one.y, other.y)
    return across > HAIR and down > HAIR


def within(inner: Rect, outer: Rect) -> bool:
    return (
        inner.x >= outer.x - HAIR
        and inner.y >= outer.y - HAIR
        and inner.right <= outer.right + HAIR
        and inner.bottom <= outer.bottom + HAIR
    )
