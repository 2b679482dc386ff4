"""Where units stand: shown as guessed, and moved by staff."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.errors import InvalidInput
from holdfast.domain.permissions import Permission
from holdfast.operations.projects import Move, Projects
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages.board import slug_of
from holdfast.web.backoffice.pages.layout_forms import (
    PARTS,
    TypedPlace,
    moves_of,
    read_place,
    read_rows,
    row_of,
)
from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.html.forms import Form

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
