"""Places as they are typed: each part by itself, and only what differs from what was shown is a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import InvalidInput
from holdfast.domain.layout import FLOORS, POSITIONS, PlacedUnit, Position
from holdfast.domain.permissions import Permission
from holdfast.operations.projects import Move, Projects
from holdfast.web.http_errors import MalformedBody
from holdfast.web.pages.backoffice.base import PREFIX, Desk, Visit
from holdfast.web.pages.backoffice.boards import slug_of
from holdfast.web.pages.forms import Form

PARTS = ("building", "floor", "position")
LONGEST_BUILDING = 50
_BOUNDS = {"floor": FLOORS, "position": POSITIONS}


class TypedPlace(NamedTuple):
    texts: Mapping[str, str]
    values: Mapping[str, Any]
    """What was typed; None where nothing was, or nothing that can be read."""
    faults: Mapping[str, str]


class Row(NamedTuple):
    code: str
    typed: TypedPlace
    was: Mapping[str, str]
    is_guessed: bool


def row_of(placed: PlacedUnit) -> Row:
    texts = _texts(placed.place)
    return Row(placed.code, TypedPlace(texts, placed.place._asdict(), {}), texts, placed.is_guessed)


def read_rows(visit: Visit, form: Form) -> list[Row]:
    """Everything stands in the form once for each row, in the same order."""
    names = ("code", "guessed", *PARTS, *(f"was-{part}" for part in PARTS))
    columns = [form.all(name) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise MalformedBody("The form does not hold the same number of every field.")
    return [_row(visit, dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


def read_place(visit: Visit, texts: Mapping[str, str]) -> TypedPlace:
    faults: dict[str, str] = {}
    values: dict[str, Any] = {"building": _building(visit, texts["building"], faults)}
    for part, bounds in _BOUNDS.items():
        values[part] = _number(visit, part, texts[part], bounds, faults)
    return TypedPlace(texts, values, faults)


def moves_of(rows: Sequence[Row]) -> dict[str, Move | None]:
    """Of each row the parts that are no longer as they were shown."""
    moves: dict[str, Move | None] = {}
    for row in rows:
        differing = [part for part in PARTS if row.typed.texts[part] != row.was[part]]
        if differing:
            moves[row.code] = {part: row.typed.values[part] for part in differing}
    return moves


def _row(visit: Visit, sent: Mapping[str, str]) -> Row:
    typed = read_place(visit, {part: sent[part].strip() for part in PARTS})
    was = {part: sent[f"was-{part}"] for part in PARTS}
    return Row(sent["code"], typed, was, sent["guessed"] == "1")


def _texts(place: Position) -> dict[str, str]:
    return {part: "" if value is None else str(value) for part, value in place._asdict().items()}


def _building(visit: Visit, text: str, faults: dict[str, str]) -> str | None:
    if not text:
        return None
    if len(text) <= LONGEST_BUILDING and text.isprintable():
        return text
    faults["building"] = visit._("A building has a name of at most 50 characters.")
    return None


def _number(
    visit: Visit, part: str, text: str, bounds: tuple[int, int], faults: dict[str, str]
) -> int | None:
    if not text:
        return None
    digits = text.removeprefix("-").removeprefix("\N{MINUS SIGN}")
    value = int(digits) if digits.isdecimal() and len(digits) <= 4 else None
    if value is not None and len(digits) < len(text):
        value = -value
    if value is not None and bounds[0] <= value <= bounds[1]:
        return value
    shown = [visit.language.plain(bound) for bound in bounds]
    faults[part] = visit._(
        "This must be a whole number from %(least)s to %(most)s.", least=shown[0], most=shown[1]
    )
    return None


# Where units stand: shown as guessed, and moved by staff.

ROWS = 100
LONGEST_CODE = 50


class LayoutPages:
    def __init__(self, projects: Projects) -> None:
        self._projects = projects

    async def show(self, visit: Visit) -> Response:
        slug = slug_of(visit.request)
        placed = await self._projects.layout_page(
            slug, visit.query.raw("after"), ROWS, _containing(visit.query)
        )
        next_code = placed[ROWS - 1].code if len(placed) > ROWS else None
        return await self._page(visit, slug, [row_of(one) for one in placed[:ROWS]], next_code)

    async def change(self, visit: Visit) -> Response:
        slug, form = slug_of(visit.request), visit.form
        rows = read_rows(visit, form)
        if form.text("do") == "move":
            target = read_place(visit, {part: form.text(f"to-{part}") for part in PARTS})
            return await self._bulk(visit, slug, rows, target)
        if form.text("do") == "reset":
            return await self._moved(visit, slug, rows, dict.fromkeys(form.all("pick")))
        if any(row.typed.faults for row in rows):
            return await self._page(visit, slug, rows, status=422)
        return await self._moved(visit, slug, rows, moves_of(rows))

    async def _bulk(self, visit: Visit, slug: str, rows: list[Any], target: TypedPlace) -> Response:
        if target.faults:
            return await self._page(visit, slug, rows, status=422, target=target)
        move = {part: value for part, value in target.values.items() if value is not None}
        picked = visit.form.all("pick")
        return await self._moved(visit, slug, rows, {code: move for code in picked if move})

    async def _moved(
        self, visit: Visit, slug: str, rows: list[Any], moves: dict[str, Move | None]
    ) -> Response:
        try:
            number = await self._projects.place(slug, moves, visit.author)
        except InvalidInput:
            # Codes that are not there: no form of ours names any.
            return await self._page(visit, slug, rows, status=422, unknown=True)
        if not number:
            return await visit.go(visit.address, visit._("Nothing was changed."), "warning")
        told = visit.ngettext("%(num)s unit was moved.", "%(num)s units were moved.", number)
        return await visit.go(visit.address, told)

    async def _page(
        self,
        visit: Visit,
        slug: str,
        rows: list[Any],
        next_code: str | None = None,
        *,
        status: int = 200,
        target: TypedPlace | None = None,
        unknown: bool = False,
    ) -> Response:
        query = visit.query
        return await visit.render(
            "layout.html",
            status,
            project=await self._projects.find(slug),
            rows=rows,
            picked=set(visit.form.all("pick")),
            target=target,
            unknown=unknown,
            tab="layout",
            containing=_containing(query) or "",
            first=_address(slug, query, None) if query.has("after") else None,
            next=None if next_code is None else _address(slug, query, next_code),
        )


def _containing(query: Form) -> str | None:
    return query.text("code")[:LONGEST_CODE] or None


def _address(slug: str, query: Form, after: str | None) -> str:
    values = {"code": _containing(query), "after": after}
    said = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{PREFIX}/projects/{slug}/layout" + (f"?{said}" if said else "")


def layout_routes(desk: Desk, projects: Projects) -> list[Route]:
    pages = LayoutPages(projects)
    path = f"{PREFIX}/projects/{{slug}}/layout"
    return [desk.page(path, Permission.SELL, GET=pages.show, POST=pages.change)]
