"""Child processes that read uploaded files and write workbooks, so that the web process is not held up."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from typing import IO

import msgspec

from holdfast.domain.errors import InvalidInput
from holdfast.operations.imports import ParsedFile
from holdfast.web.spreadsheets.csv_files import CellRow
from holdfast.web.spreadsheets.workbook_writer import END, Heading, encode_frame

READ_TIMEOUT_SECONDS = 90.0
WRITE_TIMEOUT_SECONDS = 300.0
FILE_FIELD = "/file"

READ_FAILED = "The file takes too much to be read; split it, or save it as CSV."
WRITE_FAILED = "The workbook could not be written at this moment; try again later, or export CSV."

_PARSER = (sys.executable, "-I", "-m", "holdfast.web.spreadsheets.file_parser")
_WRITER = (sys.executable, "-I", "-m", "holdfast.web.spreadsheets.workbook_writer")
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH")

_log = logging.getLogger(__name__)


class FileReader:
    """Reads one file at a time in each web process, so that many take no more memory than one."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Semaphore()

    async def read(self, content: bytes) -> ParsedFile:
        async with self._one_at_a_time:
            with tempfile.TemporaryFile() as file:
                await asyncio.to_thread(file.write, content)
                file.seek(0)
                reply = await _parse(file)
        if reply.fault:
            raise InvalidInput.at(FILE_FIELD, reply.fault)
        return reply


class WorkbookWriter:
    """Writes one workbook at a time in each web process."""

    def __init__(self) -> None:
        self._one_at_a_time = asyncio.Semaphore()

    async def write(
        self, heading: list[str], pages: AsyncIterator[list[CellRow]], *, right_to_left: bool
    ) -> IO[bytes]:
        """Return an unnamed temporary file, which the caller closes."""
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the caller closes it
        try:
            async with self._one_at_a_time, asyncio.timeout(WRITE_TIMEOUT_SECONDS):
                await _write(file, Heading(heading, right_to_left), pages)
        except BaseException as error:
            file.close()
            if isinstance(error, TimeoutError):
                raise InvalidInput.at("", WRITE_FAILED) from None
            raise
        file.seek(0)
        return file


async def _parse(file: IO[bytes]) -> ParsedFile:
    child = await asyncio.create_subprocess_exec(
        *_PARSER, stdin=file, stdout=PIPE, stderr=PIPE, env=_child_environment()
    )
    try:
        async with asyncio.timeout(READ_TIMEOUT_SECONDS):
            output, errors = await child.communicate()
    except TimeoutError:
        return ParsedFile(fault=READ_FAILED)
    finally:
        await _end(child)
    if child.returncode == 0:
        return msgspec.msgpack.decode(output, type=ParsedFile)
    fields = {"exit": child.returncode, "stderr": errors[-500:].decode(errors="replace")}
    _log.warning("a file could not be read", extra={"fields": fields})
    return ParsedFile(fault=READ_FAILED)


async def _write(file: IO[bytes], heading: Heading, pages: AsyncIterator[list[CellRow]]) -> None:
    child = await asyncio.create_subprocess_exec(*_WRITER, stdin=PIPE, stdout=file, env=_child_environment())
    assert child.stdin is not None
    try:
        child.stdin.write(encode_frame(heading))
        async for page in pages:
            child.stdin.write(encode_frame(page))
            await child.stdin.drain()
        child.stdin.write(END)
        child.stdin.close()
        await child.wait()
    except (BrokenPipeError, ConnectionResetError):
        await child.wait()
    finally:
        await _end(child)
    if child.returncode:
        _log.warning("a workbook could not be written", extra={"fields": {"exit": child.returncode}})
        raise InvalidInput.at("", WRITE_FAILED)


def _child_environment() -> dict[str, str]:
    """Return the variables that a child may see: nothing of the database or the encryption keys."""
    return {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}


async def _end(child: Process) -> None:
    if child.returncode is None:
        child.kill()
        await child.wait()
