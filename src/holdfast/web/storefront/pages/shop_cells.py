"""Units as the windows of a drawn building.

There are hundreds on a page, so their HTML is written here and not in a template. What somebody typed is
escaped.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from markupsafe import Markup, escape

from holdfast.domain.layout import BoardUnit, Building
from holdfast.domain.status import Status
from holdfast.web.html.language import Language
from holdfast.web.storefront.pages.visits import project_path

_GAP = "<i></i>"


class FloorOfWindows(NamedTuple):
    number: int | None
    windows: Markup


class BuildingOfWindows(NamedTuple):
    name: str | None
    units: int
    free: int
    columns: int
    """How wide it is drawn."""
    floors: Sequence[FloorOfWindows]


class WindowWriter:
    """For one visitor: what is theirs is shown as theirs."""

    def __init__(self, language: Language, slug: str, own: Collection[str]) -> None:
        self._base = f"{project_path(slug)}/units/"
        self._own = own
        self.words = status_words(language)

    def building(
        self,
        building: Building,
        fitting: Collection[UUID] | None = None,
        details: Mapping[UUID, str] | None = None,
        here: str | None = None,
    ) -> BuildingOfWindows:
        """``fitting``: others are dimmed. ``details``: told beside a window. ``here``: its own unit."""
        floors = [
            FloorOfWindows(
                floor.number,
                Markup("".join(self._window(unit, fitting, details or {}, here) for unit in floor.units)),  # noqa: S704
            )
            for floor in building.floors
        ]
        units = [unit for floor in building.floors for unit in floor.units if unit is not None]
        free = sum(unit.status is Status.AVAILABLE for unit in units)
        columns = max((len(floor.units) for floor in building.floors if floor.number is not None), default=0)
        return BuildingOfWindows(building.name, len(units), free, columns, floors)

    def _window(
        self,
        unit: BoardUnit | None,
        fitting: Collection[UUID] | None,
        details: Mapping[UUID, str],
        here: str | None,
    ) -> str:
        if unit is None:
            return _GAP
        look = "mine" if unit.code in self._own else unit.status.value
        code = escape(unit.code)
        dim = "" if fitting is None or unit.id in fitting else " dim"
        current = ' aria-current="page"' if unit.code == here else ""
        data = f' data-d="{details[unit.id]}"' if unit.id in details else ""
        return (
            f'<a class="u is-{look}{dim}" href="{self._base}{quote(unit.code, safe="")}"'
            f' aria-label="{code}, {self.words[look]}"{current}{data}></a>'
        )


def status_words(language: Language) -> dict[str, str]:
    return {
        "available": language.gettext("Available"),
        "held": language.gettext("Held"),
        "reserved": language.gettext("Reserved"),
        "sold": language.gettext("Sold"),
        "mine": language.gettext("Held for you"),
    }
