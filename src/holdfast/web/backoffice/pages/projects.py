"""The projects, each with how far it is sold."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.layout import Counts
from holdfast.domain.permissions import Permission
from holdfast.domain.project import slug_fault
from holdfast.domain.status import Status
from holdfast.operations.boards import Boards
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.visits import PREFIX, Visit

CARDS = 60
BAR_WIDTH = 1000
_ORDER = (Status.SOLD, Status.RESERVED, Status.HELD, Status.AVAILABLE, Status.UNAVAILABLE)


class ProjectPages:
    def __init__(self, boards: Boards) -> None:
        self._boards = boards

    async def list(self, visit: Visit) -> Response:
        after = visit.query.text("after")
        after = after if slug_fault(after) is None else ""
        cards = await self._boards.projects(after, CARDS)
        next_slug = cards[CARDS - 1].project.slug if len(cards) > CARDS else None
        return await visit.render(
            "projects.html",
            cards=cards[:CARDS],
            bars={card.project.id: bar(card.counts) for card in cards},
            order=_ORDER,
            first=f"{PREFIX}/projects" if after else None,
            next=None if next_slug is None else f"{PREFIX}/projects?{urlencode({'after': next_slug})}",
        )


def bar(counts: Counts) -> list[tuple[Status, float, float]]:
    """Status, start and width of each part of a bar; the sold part first."""
    parts, start = [], 0.0
    for status in _ORDER:
        width = BAR_WIDTH * counts.by_status[status] / (counts.total or 1)
        if width:
            parts.append((status, round(start, 2), round(width, 2)))
        start += width
    return parts


def project_list_routes(desk: Desk, boards: Boards) -> list[Route]:
    return [desk.page(f"{PREFIX}/projects", Permission.SEE_UNITS, GET=ProjectPages(boards).list)]
