"""The small square that leads from a paper to its booking; alone it opens nothing."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import segno
from starlette.responses import HTMLResponse, Response

from holdfast.domain.booking import agreement_on
from holdfast.domain.booking_steps import LANGUAGE
from holdfast.operations.bookings import FoundBooking
from holdfast.operations.units import Units
from holdfast.web.documents.content import (
    Document,
    Kind,
    MissingDocument,
    Subject,
    lacking,
    sheet_of,
    title_of,
)
from holdfast.web.pages.i18n import DIRECTIONS, NAMES, Language, language_of
from holdfast.web.pages.templates import templates

if TYPE_CHECKING:
    import typst


@lru_cache(maxsize=256)
def code_picture(address: str) -> str:
    """As SVG. It takes long enough to be drawn in a thread, and only once."""
    drawn = BytesIO()
    code = segno.make(address, error="m", micro=False)
    code.save(drawn, kind="svg", border=0, xmldecl=False, nl=False, omitsize=True)
    return drawn.getvalue().decode()


def code_source(address: str) -> str:
    """For the ``src`` of a picture."""
    return "data:image/svg+xml;base64," + b64encode(code_picture(address).encode()).decode()


# PDFs, set by typst in a thread. What is set comes as data, and is never read as instructions.
#
# Only our own fonts are used, so that a paper looks the same wherever it is made.

_HERE = Path(__file__).parent
FONTS = _HERE / "fonts"
STANDARDS: list[Any] = ["a-2a", "ua-1"]
"""For archives, and for those who are read to."""
_MOST_KEPT = 32
"""A few tens of kilobytes each."""


class PdfRenderer:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._setting = threading.Lock()
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._compiler: typst.Compiler | None = None

    async def pdf(self, sheet: Document, address: str | None) -> bytes:
        """One at a time: each takes some ten milliseconds, and its process has others to serve."""
        code = address and await asyncio.to_thread(code_picture, address)
        text, at = json.dumps(_data(sheet, code)), int(sheet.at.timestamp())
        key = hashlib.sha256(f"{at}:{text}".encode()).digest()
        async with self._turn:
            if key not in self._kept:
                self._kept[key] = await asyncio.to_thread(self._set, text, at)
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
            return self._kept[key]

    def _set(self, text: str, at: int) -> bytes:
        # Whoever gave up waiting has left the thread behind.
        with self._setting:
            if self._compiler is None:
                self._compiler = _new_compiler()
            return _compiled(self._compiler, text, at)


def _new_compiler() -> typst.Compiler:
    import typst

    fonts = typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=[str(FONTS)])
    return typst.Compiler(_HERE / "paper.typ", root=_HERE, font_paths=fonts)


def _compiled(compiler: typst.Compiler, text: str, at: int) -> bytes:
    from typst import TypstError

    given: dict[str, Any] = {"format": "pdf", "sys_inputs": {"sheet": text}, "timestamp": at}
    try:
        pdf = compiler.compile(pdf_standards=STANDARDS, **given)
    except TypstError:
        # The standards allow no letter that none of our fonts has; without them it is an empty box.
        pdf = compiler.compile(**given)
    assert isinstance(pdf, bytes)
    return pdf


def _data(sheet: Document, code: str | None) -> dict[str, Any]:
    language, _ = sheet.language, sheet.language.gettext
    return {
        "title": sheet.title,
        "project": sheet.project,
        "reference": sheet.reference,
        "lang": language.code,
        "dir": language.direction,
        "headline": None if sheet.headline is None else sheet.headline._asdict(),
        "standing": sheet.standing._asdict(),
        "tables": [_table(table) for table in sheet.tables],
        "clauses": [clause._asdict() for clause in sheet.clauses],
        "last": None if sheet.last is None else _table(sheet.last),
        "remarks": sheet.remarks,
        "code": code,
        "words": {
            "reference": _("Booking reference"),
            "standing": _("Where the booking stands"),
            "standing_note": sheet.standing_note,
            "clauses": _("The clauses"),
            "code": _("Scan to see where the booking stands"),
            "page": _("Page %(page)s of %(pages)s", page="{0}", pages="{1}"),
        },
    }


def _table(table: Any) -> dict[str, Any]:
    return {"heading": table.heading, "rows": [row._asdict() for row in table.rows]}


# Papers for whoever may see a booking: as a page, as a file, or why there is none.

_LATER, _NEVER = 409, 404
_NOT_FOUND_BY_SEARCH = {"X-Robots-Tag": "noindex, nofollow"}


class DocumentRequest(NamedTuple):
    kind: Kind
    as_file: bool
    language_code: str
    """What the address says; empty or unknown: the language of the signature."""
    own_language: str
    """In which whoever asks is spoken to, where nothing is signed yet."""
    home: str
    """The path of the booking's page; its papers are below."""
    headers: Mapping[str, str]


class Documents:
    def __init__(self, inventory: Units, public_url: str, time_zone: str) -> None:
        self._inventory = inventory
        self._public_url = public_url
        self._time_zone = time_zone
        self._press = PdfRenderer()

    async def given(self, found: FoundBooking, asked: DocumentRequest) -> Response:
        language = self._language(found, asked)
        missing = lacking(asked.kind, found.booking, language)
        if missing is not None:
            return _explained(missing, asked, language)
        sheet = sheet_of(asked.kind, await self._subject(found), language)
        address = status_address(self._public_url, found)
        if asked.as_file:
            return _file(await self._press.pdf(sheet, address), sheet, asked)
        return _page(sheet, address and await asyncio.to_thread(code_source, address), asked)

    async def _subject(self, found: FoundBooking) -> Subject:
        kept = found.booking.agreement
        if kept is not None:
            return Subject(found.booking, found.unit_code, kept, is_kept=True)
        unit, project = await self._inventory.find(found.project_slug, found.unit_code)
        now = agreement_on(unit.fields, project.name, LANGUAGE)
        return Subject(found.booking, found.unit_code, now, is_kept=False)

    def _language(self, found: FoundBooking, asked: DocumentRequest) -> Language:
        """Digits are the same for everybody: the paper is one and the same."""
        kept = found.booking.agreement
        signed_in = asked.own_language if kept is None else kept.language
        wanted = (code for code in (asked.language_code, signed_in) if code in DIRECTIONS)
        return language_of(next(wanted, LANGUAGE), "latn", self._time_zone)


def status_address(public_url: str, found: FoundBooking) -> str | None:
    """Where buyers see their booking; only where it is known by which name they reach us."""
    if not public_url:
        return None
    return f"{public_url}/p/{found.project_slug}/bookings/{found.booking.reference}"


def _page(sheet: Document, code: str | None, asked: DocumentRequest) -> Response:
    return _shown("paper.html", 200, asked, sheet.language, sheet=sheet, code=code)


def _explained(missing: MissingDocument, asked: DocumentRequest, language: Language) -> Response:
    status = _LATER if missing.may_come else _NEVER
    title = title_of(asked.kind, language)
    return _shown("lacking.html", status, asked, language, missing=missing, title=title)


def _shown(template: str, status: int, asked: DocumentRequest, language: Language, **values: Any) -> Response:
    text = (
        templates()
        .get_template(f"papers/{template}")
        .render(language=language, languages=NAMES, home=asked.home, kind=asked.kind, **values)
    )
    return HTMLResponse(text, status, headers={**asked.headers, **_NOT_FOUND_BY_SEARCH})


def _file(pdf: bytes, sheet: Document, asked: DocumentRequest) -> Response:
    name = f"holdfast-{sheet.kind}-{sheet.reference}.pdf"
    headers = {
        **asked.headers,
        **_NOT_FOUND_BY_SEARCH,
        "Content-Disposition": f'attachment; filename="{name}"',
        "Content-Language": sheet.language.code,
    }
    return Response(pdf, media_type="application/pdf", headers=headers)
