"""Where staff come in, and what they have been told already."""

from __future__ import annotations

from datetime import UTC, datetime

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.permissions import Permission
from holdfast.operations.deliveries import Announcements
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.backoffice.ways import local_path
from holdfast.web.refusals import MalformedBody


class StartPages:
    def __init__(self, announcing: Announcements) -> None:
        self._announcing = announcing

    async def start(self, visit: Visit) -> Response:
        """Everybody may see units."""
        return await visit.go(f"{PREFIX}/projects")

    async def seen(self, visit: Visit) -> Response:
        """Up to the newest that was shown: what failed since then is still to be told."""
        try:
            up_to = _moment(visit.form.text("upTo"))
        except (ValueError, OverflowError):
            raise MalformedBody("The form does not say what was seen.") from None
        await self._announcing.seen(visit.staff.id, up_to)
        return await visit.go(local_path(visit.form.text("next")))


def _moment(text: str) -> datetime:
    """An offset can lead out of the years that there are."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(text)
    return moment.astimezone(UTC)


def start_routes(desk: Desk, announcing: Announcements) -> list[Route]:
    pages = StartPages(announcing)
    return [
        desk.page(PREFIX, None, GET=pages.start),
        desk.page(f"{PREFIX}/news/seen", Permission.SEE_WEBHOOKS, POST=pages.seen),
    ]
