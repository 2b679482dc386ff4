"""The project that the simulation buys in, and the search for one with enough units for sale."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from holdfast.simulation.client import ApiClient, SimulationError

RESERVE_SHARE = 0.2
_SCOPES = "It takes the scopes integration and backoffice."
_PAGE_SIZE = 1000
_MAX_PAGES = 20
_LANGUAGE_SEPARATOR = re.compile(r"\s\|\s|\n")
_ARABIC = re.compile(r"[\u0600-\u06FF]")


class Project(NamedTuple):
    slug: str
    name: str
    codes: list[str]
    """The codes of all units in the storefront, up to the page limit."""
    available: int

    @property
    def latin_name(self) -> str:
        """The part of a bilingual name that any terminal can show, or the slug."""
        parts = [part.strip() for part in _LANGUAGE_SEPARATOR.split(self.name)]
        return next((part for part in parts if part and not _ARABIC.search(part)), self.slug)

    @property
    def reserve(self) -> int:
        """The number of units that always stay available."""
        return max(1, round(RESERVE_SHARE * len(self.codes)))


async def find_project(client: ApiClient, slug: str | None) -> Project:
    """Return the project with this slug, or the first that has enough for sale."""
    documents = await _list_all(client, "/v1/integration/projects", "projects")
    if not documents and slug is None:
        raise SimulationError("There is no project yet.")
    documents = [document for document in documents if slug in (None, document["slug"])]
    if not documents:
        raise SimulationError(f"There is no project {slug} that this key opens.")
    for document in documents:
        project = await _load_project(client, document["slug"], document["name"])
        if project.available > project.reserve:
            path = f"/v1/backoffice/projects/{quote(project.slug, safe='')}"
            if (await client.request_with_key("GET", path)).status == 403:
                raise SimulationError(f"This key may not do what staff do. {_SCOPES}")
            return project
    if slug is not None:
        raise SimulationError(_too_few_units(project))
    raise SimulationError("No project has enough units for sale: a fifth of what is on sale is never bought.")


async def _load_project(client: ApiClient, slug: str, name: str) -> Project:
    units = await _list_all(client, f"/v1/storefront/projects/{quote(slug, safe='')}/units", "units")
    available = sum(unit["status"] == "available" for unit in units)
    return Project(slug, name, [unit["code"] for unit in units], available)


async def _list_all(client: ApiClient, path: str, noun: str) -> list[Mapping[str, Any]]:
    items: list[Mapping[str, Any]] = []
    cursor: str | None = ""
    for _ in range(_MAX_PAGES):
        page = f"{path}?limit={_PAGE_SIZE}" + (f"&cursor={cursor}" if cursor else "")
        response = await client.request_with_key("GET", page)
        if response.status == 403:
            raise SimulationError(f"This key may not do what the ERP does. {_SCOPES}")
        if not response.is_success:
            raise SimulationError(f"Holdfast does not tell its {noun}: {response.problem}.")
        items += response.document[noun]
        cursor = response.document["nextCursor"]
        if cursor is None:
            break
    return items


def _too_few_units(project: Project) -> str:
    if not project.available:
        return f"Nothing is for sale in {project.slug}."
    return (
        f"Too little is for sale in {project.slug}: {project.available} of {len(project.codes)} units,"
        f" and {project.reserve} always stay available."
    )
