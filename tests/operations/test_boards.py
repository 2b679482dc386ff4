"""Boards, as they are put together from units and layout."""

from decimal import Decimal

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.board import NO_FILTERS, BoardFilter
from holdfast.domain.errors import UnknownProject
from holdfast.domain.layout import Placement
from holdfast.domain.status import Status
from holdfast.operations import boards as operation
from holdfast.operations import layouts
from holdfast.operations.boards import Board, Boards
from holdfast.operations.projects import Projects
from holdfast.operations.reports import Reports, sum_up
from holdfast.operations.units import Units
from holdfast.storage.database import Database
from tests.support.inventory import SLUG, new_project, replacement, store
from tests.support.sales import hold, new_units, sell

CODES = ("A-101", "A-102", "A-201", "B-101", "Villa")


@pytest.fixture
def boards(database: Database) -> Boards:
    return Boards(database, Units(database))


def codes_of(board: Board) -> list[list[str]]:
    return [
        [unit.code for floor in building.floors for unit in floor.units if unit is not None]
        for building in board.buildings
    ]


def floors_of(board: Board) -> list[int | None]:
    return [floor.number for building in board.buildings for floor in building.floors]


async def test_a_board_follows_units_layout_and_floors(database: Database, boards: Boards) -> None:
    """Though layouts are remembered."""
    project_id = await new_units(database, "A-101")
    assert codes_of(await boards.board(SLUG)) == [["A-101"]]
    await store(database, replacement(project_id, "B-101"))
    assert codes_of(await boards.board(SLUG)) == [["A-101"], ["B-101"]]
    projects = Projects(database, Units(database))
    await projects.arrange(SLUG, [("B-101", Placement("A", 1, 2))], COMMAND)
    assert codes_of(await boards.board(SLUG)) == [["A-101", "B-101"]]
    await projects.move_units(SLUG, {"B-101": None}, COMMAND)
    before = await boards.board(SLUG)
    assert (codes_of(before), floors_of(before)) == ([["A-101"], ["B-101"]], [1, 1])
    commands = [replacement(project_id, code) for code in ("A-101", "B-101")]
    await store(database, *(one._replace(fields=one.fields._replace(floor=30)) for one in commands))
    after = await boards.board(SLUG)
    assert (floors_of(after), after.layout_turn) == ([30, 30], before.layout_turn + 1)


async def test_layouts_that_were_looked_at_long_ago_are_forgotten_first(
    database: Database, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layouts, "CACHED_UNITS", 2)
    for slug in ("one", "two"):
        project_id = await new_project(database, slug)
        await store(database, *(replacement(project_id, f"{slug}-{number}") for number in (1, 2)))
    for slug in ("one", "two", "one"):
        assert len(codes_of(await boards.board(slug))[0]) == 2
    assert len(boards.layouts._layouts) == 1


async def test_new_units_take_their_places_among_known_ones(database: Database, boards: Boards) -> None:
    codes = [f"{building}-{floor}0{position}" for building in "CA" for floor in (3, 1) for position in (4, 2)]
    project_id = await new_units(database, *codes)
    await boards.board(SLUG)
    more = ["B-101", "A-103", "A-201", "C-305", "Villa 10", "Villa 9"]
    await store(database, *(replacement(project_id, code) for code in more))
    known, anew = await boards.board(SLUG), await Boards(database, Units(database)).board(SLUG)
    assert known.buildings == anew.buildings
    assert [building.name for building in known.buildings] == ["A", "B", "C", None]


async def test_a_project_of_many_units_is_shown_one_building_at_a_time(
    database: Database, boards: Boards, monkeypatch: pytest.MonkeyPatch
) -> None:
    await new_units(database, *CODES)
    board = await boards.board(SLUG)
    assert codes_of(board) == [["A-201", "A-101", "A-102"], ["B-101"], ["Villa"]]
    assert (board.counts.total, board.types, board.sections) == (len(CODES), ["apartment"], ())
    monkeypatch.setattr(operation, "WHOLE_UP_TO", 2)
    board = await boards.board(SLUG)
    assert [(one.name, len(one.placed)) for one in board.sections] == [("A", 3), ("B", 1), (None, 1)]
    assert (board.section, codes_of(board), board.left_out) == (0, [["A-101", "A-102"]], 1)
    second = await boards.board(SLUG, 1)
    assert (second.section, codes_of(second), second.left_out) == (1, [["B-101"]], 0)
    assert (await boards.board(SLUG, 99)).section == 0
    assert second.types == ["apartment"]
    with pytest.raises(UnknownProject):
        await boards.board("nowhere")


async def test_a_table_says_where_it_goes_on(database: Database, boards: Boards) -> None:
    project_id = await new_units(database, *CODES)
    await hold(database, (project_id, "A-102"))
    table = await boards.table(SLUG, NO_FILTERS, "", 2)
    assert [unit.code for unit in table.units] == ["A-101", "A-102"]
    assert list(table.floors) == [("A", 1), ("A", 1)]
    assert table.next_code == "A-102"
    held = await boards.table(SLUG, BoardFilter(frozenset({Status.HELD})), "", 2)
    assert [unit.code for unit in held.units] == ["A-102"]
    assert held.next_code is None
    assert held.counts.total == len(CODES)


async def test_projects_are_listed_with_their_counts_and_sales(database: Database, boards: Boards) -> None:
    project_id = await new_units(database, *CODES)
    await new_project(database, "empty")
    await sell(database, (project_id, "A-101"))
    empty, full = await boards.projects("", 10)
    assert (empty.project.slug, empty.counts.total, empty.sales.units) == ("empty", 0, 0)
    assert (full.counts.by_status[Status.SOLD], full.sales) == (1, (1, Decimal(1_000_000)))
    assert [card.project.slug for card in await boards.projects("empty", 10)] == [SLUG]
    assert len(await boards.projects("", 1)) == 2


async def test_figures_tell_of_today_what_has_happened_until_now(database: Database) -> None:
    project_id = await new_units(database, *CODES)
    await sell(database, (project_id, "A-101"))
    await hold(database, (project_id, "A-102"))
    figures = Reports(database, Units(database))
    before = await figures.load(SLUG, 30, "Asia/Riyadh")
    await sum_up(database)
    after = await figures.load(SLUG, 30, "Asia/Riyadh")
    assert before == after
    assert len(before.statuses) == len(before.sales) == 30
    of_each = dict.fromkeys(Status, 0) | {Status.AVAILABLE: 3, Status.HELD: 1, Status.SOLD: 1}
    assert before.statuses[-1].units == of_each
    assert sum(before.statuses[0].units.values()) == 0
    assert (before.units_sold, before.value_sar) == (1, Decimal(1_000_000))
    assert before.conversion == (2, 1, 1, 0)
