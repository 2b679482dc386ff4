"""Keys, the audit trail, projects and their settings; and a page from which all settings are reached."""

from __future__ import annotations

from starlette.responses import Response

from holdfast.domain.periods import Periods
from holdfast.operations.auditing import Auditing
from holdfast.operations.inventory import Inventory
from holdfast.operations.keys import Keys
from holdfast.operations.projects import Projects
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages.audit import audit_page_places
from holdfast.web.backoffice.pages.keys import key_page_places
from holdfast.web.backoffice.pages.project_settings import project_setting_places
from holdfast.web.backoffice.visits import PREFIX, Visit
from holdfast.web.routing import Place


def administration_places(
    desk: Desk,
    inventory: Inventory,
    projects: Projects,
    keys: Keys,
    auditing: Auditing,
    periods: Periods,
    public_url: str,
) -> list[Place]:
    return [
        *project_setting_places(desk, projects, periods),
        *key_page_places(desk, keys, inventory, public_url),
        *audit_page_places(desk, auditing, inventory),
        desk.page(f"{PREFIX}/settings", None, GET=_settings),
    ]


async def _settings(visit: Visit) -> Response:
    return await visit.render("settings.html")
