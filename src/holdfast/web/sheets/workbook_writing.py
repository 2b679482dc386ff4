"""XLSX, written beside the web process into a file without a name."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from typing import IO

import msgspec

from holdfast.domain.cells import KEPT, escaped_in_workbook
from holdfast.domain.errors import InvalidInput
from holdfast.web.sheets.child_environment import child_environment
from holdfast.web.sheets.unit_rows import Written
from holdfast.web.sheets.write_workbook import LENGTH_BYTES, Heading

LONGEST_CELL = 32_767
SECONDS_AT_MOST = 300.0

TOO_SLOW = "The workbook could not be written at this moment; try again later, or export CSV."

_log = logging.getLogger(__name__)

_PROGRAM = (sys.executable, "-I", "-m", "holdfast.web.sheets.write_workbook")
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
    thing = sent if isinstance(sent, Heading) else [[_cell(value) for value in row] for row in sent]
    frame = msgspec.msgpack.encode(thing)
    return len(frame).to_bytes(LENGTH_BYTES) + frame


def _cell(value: Written) -> str | float | None:
    """A number of ours has at most fourteen digits, which a float holds exactly enough to give them back."""
    if not isinstance(value, str):
        return None if value is None else float(value)
    text = escaped_in_workbook(value)
    fits = len(text) <= LONGEST_CELL and not any(one in text for one in _NO_CHARACTERS)
    return text if fits else KEPT
