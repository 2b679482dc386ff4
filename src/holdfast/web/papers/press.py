"""PDFs, set by typst in a thread. What is set comes as data, and is never read as instructions.

Only our own fonts are used, so that a paper looks the same wherever it is made.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.web.papers.codes import code_picture
from holdfast.web.papers.sheets import Sheet

if TYPE_CHECKING:
    import typst

_HERE = Path(__file__).parent
FONTS = _HERE / "fonts"
STANDARDS: list[Any] = ["a-2a", "ua-1"]
"""For archives, and for those who are read to."""
_MOST_KEPT = 32
"""A few tens of kilobytes each."""


class Press:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._setting = threading.Lock()
        self._kept: OrderedDict[bytes, bytes] = OrderedDict()
        self._compiler: typst.Compiler | None = None

    async def pdf(self, sheet: Sheet, address: str | None) -> bytes:
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


def _data(sheet: Sheet, code: str | None) -> dict[str, Any]:
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
