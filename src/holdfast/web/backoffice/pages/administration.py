"""Keys, the audit trail, projects and their settings; and a page from which all settings are reached."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from holdfast.domain.holds import Periods
from holdfast.operations.api_keys import ApiKeys
from holdfast.operations.audit import Audit
from holdfast.operations.projects import Projects
from holdfast.operations.units import Units
from holdfast.web.backoffice.desk import Desk
from holdfast.web.backoffice.pages.audit import audit_page_routes
from holdfast.web.backoffice.pages.keys import key_page_routes
from holdfast.web.backoffice.pages.project_settings import project_setting_routes
from holdfast.web.backoffice.visits import PREFIX, Visit


def administration_routes(
    desk: Desk,
    inventory: Units,
    projects: Projects,
    keys: ApiKeys,
    auditing: Audit,
    periods: Periods,
    public_url: str,
) -> list[Route]:
    return [
        *project_setting_routes(desk, projects, periods),
        *key_page_routes(desk, keys, inventory, public_url),
        *audit_page_routes(desk, auditing, inventory),
        desk.page(f"{PREFIX}/settings", None, GET=_settings),
    ]


async def _settings(visit: Visit) -> Response:
    return await visit.render("settings.html")
