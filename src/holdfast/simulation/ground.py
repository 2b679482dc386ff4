"""Where it is to be played: is there a Holdfast, does it take the key, and what is for sale."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx

from holdfast.simulation.calling import Answer, Caller
from holdfast.simulation.refused import SimulationRefused

KEPT_SHARE = 0.2
_SCOPES = "It takes the scopes integration and backoffice."
_PAGE = 1000
_MOST_PAGES = 20
_BETWEEN_LANGUAGES = re.compile(r"\s\|\s|\n")
_ARABIC = re.compile(r"[\u0600-\u06FF]")

Document = Mapping[str, Any]


class Ground(NamedTuple):
    slug: str
    name: str
    codes: list[str]
    """Of all units that the storefront shows, as far as they are looked at."""
    available: int

    @property
    def shown(self) -> str:
        """A name may be in two languages, and a terminal may not know how to write from right to left."""
        parts = [part.strip() for part in _BETWEEN_LANGUAGES.split(self.name)]
        return next((part for part in parts if part and not _ARABIC.search(part)), self.slug)

    @property
    def keep(self) -> int:
        """So many stay available, whoever plays, and however often."""
        return max(1, round(KEPT_SHARE * len(self.codes)))


async def refuse_if_away(http: httpx.AsyncClient) -> None:
    url = str(http.base_url).rstrip("/")
    try:
        response = await http.get("/readyz")
    except httpx.TransportError:
        raise SimulationRefused(f"Nothing answers at {url}; is `holdfast serve` running there?") from None
    if response.status_code == 503:
        raise SimulationRefused(f"The Holdfast at {url} is not ready yet.")
    if response.status_code != 200 or "x-request-id" not in response.headers:
        raise SimulationRefused(f"What answers at {url} is no Holdfast.")


async def find_ground(caller: Caller, slug: str | None) -> Ground:
    """The project of this slug, or the first that has enough for sale."""
    found = None
    for project in await _projects(caller, slug):
        found = await _look_at(caller, project["slug"], project["name"])
        if found.available > found.keep:
            await _refuse_if_not_staff(caller, found.slug)
            return found
    raise SimulationRefused(_too_little(found if slug else None))


async def _projects(caller: Caller, slug: str | None) -> list[Document]:
    projects = await _all(caller, "/v1/integration/projects", "projects")
    if not projects and slug is None:
        raise SimulationRefused("There is no project yet.")
    wanted = [project for project in projects if slug in (None, project["slug"])]
    if not wanted:
        raise SimulationRefused(f"There is no project {slug} that this key opens.")
    return wanted


async def _all(caller: Caller, path: str, noun: str) -> list[Document]:
    """Page after page, but not without end."""
    found: list[Document] = []
    cursor: str | None = ""
    for _ in range(_MOST_PAGES):
        answer = await caller.with_key(
            "GET", f"{path}?limit={_PAGE}" + (f"&cursor={cursor}" if cursor else "")
        )
        if not answer.is_good:
            raise SimulationRefused(_not_told(answer, noun))
        found += answer.document[noun]
        cursor = answer.document["nextCursor"]
        if cursor is None:
            break
    return found


def _not_told(answer: Answer, noun: str) -> str:
    if answer.status == 403:
        return f"This key may not do what the ERP does. {_SCOPES}"
    return f"Holdfast does not tell its {noun}: {answer.problem}."


async def _refuse_if_not_staff(caller: Caller, slug: str) -> None:
    answer = await caller.with_key("GET", f"/v1/backoffice/projects/{quote(slug, safe='')}")
    if answer.status == 403:
        raise SimulationRefused(f"This key may not do what staff do. {_SCOPES}")


async def _look_at(caller: Caller, slug: str, name: str) -> Ground:
    units = await _all(caller, f"/v1/storefront/projects/{quote(slug, safe='')}/units", "units")
    available = sum(unit["status"] == "available" for unit in units)
    return Ground(slug, name, [unit["code"] for unit in units], available)


def _too_little(ground: Ground | None) -> str:
    if ground is None:
        return "No project has enough units for sale: a fifth of what is on sale is never bought."
    if not ground.available:
        return f"Nothing is for sale in {ground.slug}."
    few = f"Too little is for sale in {ground.slug}: {ground.available} of {len(ground.codes)} units"
    return f"{few}, and {ground.keep} always stay available."
