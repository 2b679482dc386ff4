"""Agreements and receipts as responses: a page to print, a PDF, or a page that says why there is none."""

from __future__ import annotations

import asyncio
import threading
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import segno
from starlette.responses import HTMLResponse, Response

from holdfast.domain.booking import new_agreement
from holdfast.domain.booking_actions import LANGUAGE
from holdfast.domain.seller import NOBODY_NAMED
from holdfast.operations.bookings import FoundBooking
from holdfast.operations.sellers import Sellers
from holdfast.operations.units import Units
from holdfast.web.documents import content
from holdfast.web.pages.i18n import DIRECTIONS, NAMES, Language, language_of
from holdfast.web.pages.templates import templates

if TYPE_CHECKING:
    import typst

FONTS = Path(__file__).parent / "fonts"
# PDF/A-2a for archives, PDF/UA-1 for screen readers.
STANDARDS: list[Any] = ["a-2a", "ua-1"]
_SHOWN = ("title", "project", "reference", "booking_state", "is_over", "remarks")
_CACHE_SIZE = 32
"""A PDF has a few tens of kilobytes, and its logo twice."""


class Documents:
    def __init__(self, inventory: Units, sellers: Sellers, public_url: str, time_zone: str) -> None:
        self._inventory = inventory
        self._sellers = sellers
        self._public_url = public_url
        self._time_zone = time_zone
        self._pdfs = PdfRenderer()

    async def render(
        self,
        found: FoundBooking,
        kind: content.Kind,
        *,
        as_pdf: bool,
        requested_language: str,
        page_language: str,
        booking_path: str,
        headers: Mapping[str, str],
    ) -> Response:
        """Return a document in the requested language, or else in that of the signature or the page."""
        language = self.language(found, requested_language, page_language)
        headers = {**headers, "X-Robots-Tag": "noindex, nofollow"}
        values: dict[str, Any] = {"languages": NAMES, "home": booking_path, "kind": kind}
        values |= {"language": language, "seller": await self._sellers.effective(found.project_slug)}
        missing = content.find_missing(kind, found.booking, language)
        if missing is not None:
            template = templates().get_template("documents/missing.html")
            html = template.render(values, missing=missing, title=content.document_title(kind, language))
            return HTMLResponse(html, 409 if missing.may_come else 404, headers=headers)
        document = await self.build(found, kind, language)
        url = status_url(self._public_url, found)
        if as_pdf:
            headers["Content-Disposition"] = f'attachment; filename="{file_name(document)}"'
            headers["Content-Language"] = language.code
            pdf = await self.build_pdf(found, document)
            return Response(pdf, media_type="application/pdf", headers=headers)
        svg = url and await asyncio.to_thread(qr_code_svg, url)
        qr_code = svg and "data:image/svg+xml;base64," + b64encode(svg.encode()).decode()
        template = templates().get_template("documents/document.html")
        return HTMLResponse(template.render(values, document=document, qr_code=qr_code), headers=headers)

    async def build(self, found: FoundBooking, kind: content.Kind, language: Language) -> content.Document:
        return content.build_document(kind, await self._subject(found), language)

    async def build_pdf(self, found: FoundBooking, document: content.Document) -> bytes:
        logo = document.logo and await self._sellers.find_logo(document.logo)
        return await self._pdfs.render(document, status_url(self._public_url, found), logo or None)

    async def _subject(self, found: FoundBooking) -> content.Subject:
        agreement = found.booking.agreement
        if agreement is not None:
            return content.Subject(found.booking, found.unit_code, agreement, is_signed_text=True)
        unit, project = await self._inventory.find(found.project_slug, found.unit_code)
        agreement = new_agreement(unit.fields, project.name, LANGUAGE, NOBODY_NAMED)
        return content.Subject(found.booking, found.unit_code, agreement, is_signed_text=False)

    def language(self, found: FoundBooking, requested: str = "", page_language: str = LANGUAGE) -> Language:
        agreement = found.booking.agreement
        signed_in = page_language if agreement is None else agreement.language
        code = next((code for code in (requested, signed_in) if code in DIRECTIONS), LANGUAGE)
        # The digits are the same for everybody, so that there is one document in each language.
        return language_of(code, "latn", self._time_zone)


def file_name(document: content.Document) -> str:
    return f"holdfast-{document.kind}-{document.reference}.pdf"


def status_url(public_url: str, found: FoundBooking) -> str | None:
    """Return the address where buyers see their booking, if the public name of this server is known."""
    if not public_url:
        return None
    return f"{public_url}/p/{found.project_slug}/bookings/{found.booking.reference}"


class PdfRenderer:
    """Sets PDFs with typst in a thread, with our own fonts only, so that they look the same everywhere."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        # A caller that gave up waiting leaves its thread behind.
        self._compiling = threading.Lock()
        self._compile_once = lru_cache(maxsize=_CACHE_SIZE)(self._compile)
        self._compiler: typst.Compiler | None = None

    async def render(self, document: content.Document, url: str | None, logo: bytes | None = None) -> bytes:
        """One at a time: each takes some ten milliseconds, and the process has other requests to serve."""
        async with self._lock:
            return await asyncio.to_thread(self._compile_once, document, url, logo)

    def _compile(self, document: content.Document, url: str | None, logo: bytes | None) -> bytes:
        import typst

        data, timestamp = _data(document, url and qr_code_svg(url)), int(document.created_at.timestamp())
        with self._compiling:
            if self._compiler is None:
                fonts = typst.Fonts(
                    include_system_fonts=False, include_embedded_fonts=False, font_paths=[str(FONTS)]
                )
                self._compiler = typst.Compiler(
                    FONTS.parent / "document.typ", root=FONTS.parent, font_paths=fonts
                )
            # The standards allow no letter that none of our fonts has; without them it is an empty box. And
            # a logo may be damaged beyond what was checked.
            for picture, standards in product((logo, None), (STANDARDS, [])):
                text = msgspec.json.encode({**data, "logo": picture and list(picture)}).decode()
                options: dict[str, Any] = {"sys_inputs": {"data": text}, "pdf_standards": standards}
                with suppress(typst.TypstError):
                    pdf = self._compiler.compile(format="pdf", timestamp=timestamp, **options)
                    assert isinstance(pdf, bytes)
                    return pdf
        raise RuntimeError("typst failed with and without logo and standards")


def _data(document: content.Document, qr_code: str | None) -> dict[str, Any]:
    """Return what ``document.typ`` reads. All of it is data there and never read as instructions."""
    language, _ = document.language, document.language.gettext
    return {
        **{name: getattr(document, name) for name in _SHOWN},
        "lang": language.code,
        "dir": language.direction,
        "headline": None if document.headline is None else document.headline._asdict(),
        "tables": [_table(table) for table in document.tables],
        "clauses": [clause._asdict() for clause in document.clauses],
        "signature": None if document.signature is None else _table(document.signature),
        "qr_code": qr_code,
        "words": {
            "reference": _("Booking reference"),
            "booking_state": _("Booking status"),
            "state_note": document.state_note,
            "clauses": _("Terms"),
            "logo": _("Logo"),
            "qr_code": _("Scan to see the booking status"),
            "page": _("Page %(page)s of %(pages)s", page="{0}", pages="{1}"),
        },
    }


def _table(table: content.Table) -> dict[str, Any]:
    return {"heading": table.heading, "rows": [row._asdict() for row in table.rows]}


@lru_cache(maxsize=256)
def qr_code_svg(url: str) -> str:
    """Drawing takes long enough to be done in a thread, and only once."""
    svg = BytesIO()
    segno.make(url, error="m", micro=False).save(
        svg, kind="svg", border=0, xmldecl=False, nl=False, omitsize=True
    )
    return svg.getvalue().decode()
