"""Child processes that read uploaded files and write workbooks, so that the web process is not held up."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import IO, Any, NamedTuple

import msgspec

from holdfast.domain.errors import InvalidInput
from holdfast.operations.imports import ParsedFile
from holdfast.web.spreadsheets.csv_files import CellRow
from holdfast.web.spreadsheets.workbook_writer import END, Heading, encode_frame

FILE_FIELD = "/file"

READ_FAILED = "The file is too complex to read; split it, or save it as CSV."
WRITE_FAILED = "The workbook could not be written right now; try again later, or export CSV."

_PARSER = (sys.executable, "-I", "-m", "holdfast.web.spreadsheets.file_parser")
_WRITER = (sys.executable, "-I", "-m", "holdfast.web.spreadsheets.workbook_writer")
_SHOWN_OF_STDERR = 500
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")

_log = logging.getLogger(__name__)


class Limits(NamedTuple):
    """Of a child. On Linux the kernel enforces all but the time, whatever a file makes of the child."""

    cpu_seconds: int
    seconds: float
    memory_bytes: int = 1024**3
    file_bytes: int = 512 * 1024**2
    """Of what it writes, to its output and to temporary files."""


READ_LIMITS = Limits(60, 90.0, file_bytes=128 * 1024**2)
WRITE_LIMITS = Limits(240, 300.0)


class FileReader:
    """Reads one file at a time in each web process, so that many take no more memory than one."""

    def __init__(self, limits: Limits = READ_LIMITS) -> None:
        self._limits = limits
        self._one_at_a_time = asyncio.Semaphore()

    async def read(self, content: bytes) -> ParsedFile:
        async with self._one_at_a_time:
            with tempfile.TemporaryFile() as file:
                await asyncio.to_thread(file.write, content)
                file.seek(0)
                reply = await _parse(file, self._limits)
        if reply.fault:
            raise InvalidInput.at(FILE_FIELD, reply.fault)
        return reply


class WorkbookWriter:
    """Writes one workbook at a time in each web process."""

    def __init__(self, limits: Limits = WRITE_LIMITS) -> None:
        self._limits = limits
        self._one_at_a_time = asyncio.Semaphore()

    async def write(
        self, heading: list[str], pages: AsyncIterator[list[CellRow]], *, right_to_left: bool
    ) -> IO[bytes]:
        """Return an unnamed temporary file, which the caller closes."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            async with self._one_at_a_time:
                await _write(file, Heading(heading, right_to_left), pages, self._limits)
        except BaseException:
            file.close()
            raise
        file.seek(0)
        return file


async def _parse(file: IO[bytes], limits: Limits) -> ParsedFile:
    # Files, whose size the kernel limits, and not pipes.
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        async with _running(_PARSER, limits, stdin=file, stdout=output, stderr=errors) as child:
            await child.wait()
        if child.returncode == 0:
            output.seek(0)
            return msgspec.msgpack.decode(await asyncio.to_thread(output.read), type=ParsedFile)
        errors.seek(max(0, errors.seek(0, os.SEEK_END) - _SHOWN_OF_STDERR))
        fields = {"exit": child.returncode, "stderr": errors.read().decode(errors="replace")}
        _log.warning("a file could not be read", extra={"fields": fields})
        return ParsedFile(fault=READ_FAILED)


async def _write(
    file: IO[bytes], heading: Heading, pages: AsyncIterator[list[CellRow]], limits: Limits
) -> None:
    async with _running(_WRITER, limits, stdin=PIPE, stdout=file) as child:
        assert child.stdin is not None
        with suppress(BrokenPipeError, ConnectionResetError):
            child.stdin.write(encode_frame(heading))
            async for page in pages:
                child.stdin.write(encode_frame(page))
                await child.stdin.drain()
            child.stdin.write(END)
            child.stdin.close()
        await child.wait()
    if child.returncode:
        _log.warning("a workbook could not be written", extra={"fields": {"exit": child.returncode}})
        raise InvalidInput.at("", WRITE_FAILED)


@asynccontextmanager
async def _running(command: Sequence[str], limits: Limits, **streams: Any) -> AsyncIterator[Process]:
    """Leave the block when the time is over, and kill the child."""
    child = await asyncio.create_subprocess_exec(*command, env=_child_environment(), **streams)
    try:
        # Not every system lets a process limit another.
        with suppress(ProcessLookupError, AttributeError):
            # SIGXCPU ends the child, and SIGKILL one that ignores it.
            resource.prlimit(child.pid, resource.RLIMIT_CPU, (limits.cpu_seconds, limits.cpu_seconds + 1))
            resource.prlimit(child.pid, resource.RLIMIT_AS, (limits.memory_bytes,) * 2)
            resource.prlimit(child.pid, resource.RLIMIT_FSIZE, (limits.file_bytes,) * 2)
            resource.prlimit(child.pid, resource.RLIMIT_CORE, (0, 0))
        with suppress(TimeoutError):
            async with asyncio.timeout(limits.seconds):
                yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def _child_environment() -> dict[str, str]:
    """Return the variables that a child may see: nothing of the database or the encryption keys."""
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
