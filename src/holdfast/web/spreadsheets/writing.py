"""Units as rows of a spreadsheet, which an import reads back to the same units."""

from __future__ import annotations

import asyncio
import csv
import io
import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from decimal import Decimal
from typing import IO, Any

import msgspec

from holdfast.domain.cells import KEPT, escaped, escaped_in_workbook, media_text
from holdfast.domain.errors import InvalidInput
from holdfast.domain.imports import FIELDS, NAMES, NOT_IMPORTED
from holdfast.domain.spelling import format_timestamp
from holdfast.domain.unit import Unit
from holdfast.web.spreadsheets.child_environment import child_environment
from holdfast.web.spreadsheets.write_workbook import LENGTH_BYTES, Heading

Written = str | int | Decimal | None
"""None: an empty cell."""

WORDS = {
    "en": {True: "yes", False: "no"},
    "ar": {True: "نعم", False: "لا"},
}
STATUS_WORDS = {
    "en": {name: name for name in ("available", "held", "reserved", "sold", "unavailable")},
    "ar": {
        "available": "متاحة",
        "held": "محجوزة مؤقتًا",
        "reserved": "محجوزة",
        "sold": "مباعة",
        "unavailable": "غير معروضة",
    },
}


def headings(language: str) -> list[str]:
    own = [NAMES[field][language][0] for field in FIELDS]
    return own + [names[language] for names in NOT_IMPORTED.values()]


def row_of(unit: Unit, language: str) -> list[Written]:
    fields = unit.fields._asdict()
    if unit.fields.vat_included is not None:
        fields["vat_included"] = WORDS[language][unit.fields.vat_included]
    values: dict[str, Any] = {**fields, "code": unit.code, "status": STATUS_WORDS[language][unit.status]}
    own = [_written(values[field]) for field in FIELDS]
    return [*own, unit.ref, format_timestamp(unit.updated_at)]


def _written(value: Any) -> Written:
    if isinstance(value, tuple):
        return media_text(value) or None
    return value  # type: ignore[no-any-return]


# CSV that spreadsheet programs open as it is, and that runs nothing in them.

MARK = "\ufeff"
"""Without it a certain program takes the file for another encoding."""


def csv_lines(rows: Iterable[Iterable[Written]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_csv_cell(value) for value in row] for row in rows)
    return text.getvalue().encode()


def _csv_cell(value: Written) -> str:
    if isinstance(value, str):
        return escaped(value)
    return "" if value is None else format(value, "f" if not isinstance(value, int) else "d")


# XLSX, written beside the web process into a file without a name.

LONGEST_CELL = 32_767
SECONDS_AT_MOST = 300.0

TOO_SLOW = "The workbook could not be written at this moment; try again later, or export CSV."

_log = logging.getLogger(__name__)

_PROGRAM = (sys.executable, "-I", "-m", "holdfast.web.spreadsheets.write_workbook")
# XML has no way to write them.
_NO_CHARACTERS = ("\ufffe", "\uffff")


class WorkbookWriter:
    """One at a time in each web process."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore()

    async def write(
        self, heading: list[str], pages: AsyncIterator[Sequence[Sequence[Written]]], *, right_to_left: bool
    ) -> IO[bytes]:
        """The file, for the caller to close."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - it is the answer
        try:
            async with self._turn, asyncio.timeout(SECONDS_AT_MOST):
                await _write(file, Heading(heading, right_to_left), pages)
        except BaseException as failure:
            file.close()
            if isinstance(failure, TimeoutError):
                raise InvalidInput.at("", TOO_SLOW) from None
            raise
        file.seek(0)
        return file


async def _write(
    file: IO[bytes], heading: Heading, pages: AsyncIterator[Sequence[Sequence[Written]]]
) -> None:
    child = await asyncio.create_subprocess_exec(
        *_PROGRAM, stdin=asyncio.subprocess.PIPE, stdout=file, env=child_environment()
    )
    assert child.stdin is not None
    try:
        await _send(child.stdin, framed(heading))
        async for page in pages:
            await _send(child.stdin, framed(page))
        child.stdin.write(bytes(LENGTH_BYTES))
        child.stdin.close()
        await child.wait()
    except (BrokenPipeError, ConnectionResetError):
        await child.wait()
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if child.returncode:
        _log.warning("a workbook could not be written", extra={"fields": {"exit": child.returncode}})
        raise InvalidInput.at("", TOO_SLOW)


async def _send(pipe: asyncio.StreamWriter, frame: bytes) -> None:
    pipe.write(frame)
    await pipe.drain()


def framed(sent: Heading | Sequence[Sequence[Written]]) -> bytes:
    """As the process that writes takes it: first how long it is."""
    thing = sent if isinstance(sent, Heading) else [[_workbook_cell(value) for value in row] for row in sent]
    frame = msgspec.msgpack.encode(thing)
    return len(frame).to_bytes(LENGTH_BYTES) + frame


def _workbook_cell(value: Written) -> str | float | None:
    """A number of ours has at most fourteen digits, which a float holds exactly enough to give them back."""
    if not isinstance(value, str):
        return None if value is None else float(value)
    text = escaped_in_workbook(value)
    fits = len(text) <= LONGEST_CELL and not any(one in text for one in _NO_CHARACTERS)
    return text if fits else KEPT
