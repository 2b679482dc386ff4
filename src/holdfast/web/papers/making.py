"""Papers for whoever may see a booking: as a page, as a file, or why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.responses import HTMLResponse, Response

from holdfast.domain.booking import agreement_on
from holdfast.domain.booking_steps import LANGUAGE
from holdfast.operations.bookings import Found
from holdfast.operations.units import Units
from holdfast.web.html.language import DIRECTIONS, NAMES, Language, language_of
from holdfast.web.html.templates import templates
from holdfast.web.papers.codes import code_source
from holdfast.web.papers.lacking import Lacking, lacking
from holdfast.web.papers.press import Press
from holdfast.web.papers.sheets import Kind, Sheet, Subject, sheet_of, title_of

_LATER, _NEVER = 409, 404
_NOT_FOUND_BY_SEARCH = {"X-Robots-Tag": "noindex, nofollow"}


class Asked(NamedTuple):
    kind: Kind
    as_file: bool
    language_code: str
    """What the address says; empty or unknown: the language of the signature."""
    own_language: str
    """In which whoever asks is spoken to, where nothing is signed yet."""
    home: str
    """The path of the booking's page; its papers are below."""
    headers: Mapping[str, str]


class Papers:
    def __init__(self, inventory: Units, public_url: str, time_zone: str) -> None:
        self._inventory = inventory
        self._public_url = public_url
        self._time_zone = time_zone
        self._press = Press()

    async def given(self, found: Found, asked: Asked) -> Response:
        language = self._language(found, asked)
        missing = lacking(asked.kind, found.booking, language)
        if missing is not None:
            return _explained(missing, asked, language)
        sheet = sheet_of(asked.kind, await self._subject(found), language)
        address = status_address(self._public_url, found)
        if asked.as_file:
            return _file(await self._press.pdf(sheet, address), sheet, asked)
        return _page(sheet, address and await asyncio.to_thread(code_source, address), asked)

    async def _subject(self, found: Found) -> Subject:
        kept = found.booking.agreement
        if kept is not None:
            return Subject(found.booking, found.unit_code, kept, is_kept=True)
        unit, project = await self._inventory.find(found.project_slug, found.unit_code)
        now = agreement_on(unit.fields, project.name, LANGUAGE)
        return Subject(found.booking, found.unit_code, now, is_kept=False)

    def _language(self, found: Found, asked: Asked) -> Language:
        """Digits are the same for everybody: the paper is one and the same."""
        kept = found.booking.agreement
        signed_in = asked.own_language if kept is None else kept.language
        wanted = (code for code in (asked.language_code, signed_in) if code in DIRECTIONS)
        return language_of(next(wanted, LANGUAGE), "latn", self._time_zone)


def status_address(public_url: str, found: Found) -> str | None:
    """Where buyers see their booking; only where it is known by which name they reach us."""
    if not public_url:
        return None
    return f"{public_url}/p/{found.project_slug}/bookings/{found.booking.reference}"


def _page(sheet: Sheet, code: str | None, asked: Asked) -> Response:
    return _shown("paper.html", 200, asked, sheet.language, sheet=sheet, code=code)


def _explained(missing: Lacking, asked: Asked, language: Language) -> Response:
    status = _LATER if missing.may_come else _NEVER
    title = title_of(asked.kind, language)
    return _shown("lacking.html", status, asked, language, missing=missing, title=title)


def _shown(template: str, status: int, asked: Asked, language: Language, **values: Any) -> Response:
    text = (
        templates()
        .get_template(f"papers/{template}")
        .render(language=language, languages=NAMES, home=asked.home, kind=asked.kind, **values)
    )
    return HTMLResponse(text, status, headers={**asked.headers, **_NOT_FOUND_BY_SEARCH})


def _file(pdf: bytes, sheet: Sheet, asked: Asked) -> Response:
    name = f"holdfast-{sheet.kind}-{sheet.reference}.pdf"
    headers = {
        **asked.headers,
        **_NOT_FOUND_BY_SEARCH,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Language": sheet.language.code,
    }
    return Response(pdf, media_type="application/pdf", headers=headers)
