"""The layout of a project: where its units stand, as guessed or as moved by staff."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from holdfast.domain.errors import InvalidInput
from holdfast.domain.layout import FLOORS, POSITIONS
from holdfast.domain.permissions import Permission
from holdfast.operations.projects import Move
from holdfast.web.errors import MalformedBody
from holdfast.web.pages.backoffice.base import PREFIX, StaffRequest, pages, with_query

ROWS_A_PAGE = 100
PARTS = ("building", "floor", "position")

_NUMBER = re.compile(r"[-\N{MINUS SIGN}]?\d{1,4}")
_LONGEST_CODE = 50
_LONGEST_BUILDING = 50
_BOUNDS = {"floor": FLOORS, "position": POSITIONS}


class TypedPlace(NamedTuple):
    texts: Mapping[str, str]
    values: Mapping[str, Any]
    """The parsed parts; None where nothing was typed, or nothing that can be parsed."""
    faults: Mapping[str, str]


class Row(NamedTuple):
    code: str
    typed: TypedPlace
    was: Mapping[str, str]
    is_guessed: bool


@pages.get("/projects/{slug}/layout", Permission.SELL)
async def show_layout(request: StaffRequest, slug: str) -> Response:
    placed = await request.services.projects.layout_page(
        slug, request.query.raw("after"), ROWS_A_PAGE, _code_filter(request)
    )
    next_code = placed[ROWS_A_PAGE - 1].code if len(placed) > ROWS_A_PAGE else None
    rows = []
    for unit in placed[:ROWS_A_PAGE]:
        place = unit.placement._asdict()
        texts = {part: "" if value is None else str(value) for part, value in place.items()}
        rows.append(Row(unit.code, TypedPlace(texts, place, {}), texts, unit.is_guessed))
    return await _render(request, slug, rows, next_code)


@pages.post("/projects/{slug}/layout", Permission.SELL)
async def change_layout(request: StaffRequest, slug: str) -> Response:
    form = request.form
    rows, picked = _parse_rows(request), form.all("pick")
    if form.text("do") == "move":
        target = _parse_place(request, {part: form.text(f"to-{part}") for part in PARTS})
        if target.faults:
            return await _render(request, slug, rows, status=422, target=target)
        move = {part: value for part, value in target.values.items() if value is not None}
        return await _move(request, slug, rows, {code: move for code in picked if move})
    if form.text("do") == "reset":
        return await _move(request, slug, rows, dict.fromkeys(picked))
    if any(row.typed.faults for row in rows):
        return await _render(request, slug, rows, status=422)
    moves: dict[str, Move | None] = {}
    for row in rows:
        # Only the parts that are no longer as they were shown.
        changed = [part for part in PARTS if row.typed.texts[part] != row.was[part]]
        if changed:
            moves[row.code] = {part: row.typed.values[part] for part in changed}
    return await _move(request, slug, rows, moves)


async def _move(
    request: StaffRequest, slug: str, rows: Sequence[Row], moves: dict[str, Move | None]
) -> Response:
    try:
        number = await request.services.projects.move_units(slug, moves, request.author)
    except InvalidInput:
        # Codes that are not there: no form of ours names any.
        return await _render(request, slug, rows, status=422, unknown=True)
    notice = request.ngettext("%(num)s unit was moved.", "%(num)s units were moved.", number)
    if not number:
        notice = request._("Nothing was changed.")
    return await request.redirect_with_notice(request.full_path, notice, "done" if number else "warning")


async def _render(
    request: StaffRequest,
    slug: str,
    rows: Sequence[Row],
    next_code: str | None = None,
    *,
    status: int = 200,
    target: TypedPlace | None = None,
    unknown: bool = False,
) -> Response:
    path, code = f"{PREFIX}/projects/{slug}/layout", _code_filter(request)
    return await request.render(
        "layout.html",
        status,
        project=await request.services.projects.find(slug),
        rows=rows,
        picked=set(request.form.all("pick")),
        target=target,
        unknown=unknown,
        tab="layout",
        containing=code or "",
        first=with_query(path, code=code) if request.query.has("after") else None,
        next=None if next_code is None else with_query(path, code=code, after=next_code),
    )


def _code_filter(request: StaffRequest) -> str | None:
    return request.query.text("code")[:_LONGEST_CODE] or None


def _parse_rows(request: StaffRequest) -> list[Row]:
    """Every field stands in the form once for each row, in the same order."""
    names = ("code", "guessed", *PARTS, *(f"was-{part}" for part in PARTS))
    columns = [request.form.all(name) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise MalformedBody("The form does not have the same number of values for each field.")
    rows = []
    for values in zip(*columns, strict=True):
        sent = dict(zip(names, values, strict=True))
        typed = _parse_place(request, {part: sent[part].strip() for part in PARTS})
        was = {part: sent[f"was-{part}"] for part in PARTS}
        rows.append(Row(sent["code"], typed, was, sent["guessed"] == "1"))
    return rows


def _parse_place(request: StaffRequest, texts: Mapping[str, str]) -> TypedPlace:
    building = texts["building"]
    faults: dict[str, str] = {}
    values: dict[str, Any] = {"building": building or None}
    if len(building) > _LONGEST_BUILDING or not building.isprintable():
        values["building"] = None
        faults["building"] = request._("A building's name has at most 50 characters.")
    for part, (least, most) in _BOUNDS.items():
        is_number = _NUMBER.fullmatch(texts[part])
        number = int(texts[part].replace("\N{MINUS SIGN}", "-")) if is_number else None
        values[part] = number if number is not None and least <= number <= most else None
        if texts[part] and values[part] is None:
            faults[part] = request._(
                "This must be a whole number from %(least)s to %(most)s.",
                least=request.language.plain(least),
                most=request.language.plain(most),
            )
    return TypedPlace(texts, values, faults)
