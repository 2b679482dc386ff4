"""A file from outside, read by a process that has little to lose."""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
from typing import IO

import msgspec

from holdfast.domain.errors import InvalidInput
from holdfast.operations.imports import Reply
from holdfast.web.spreadsheets.child_environment import child_environment

SECONDS_AT_MOST = 90.0
FILE_FIELD = "/file"

TOO_MUCH = "The file takes too much to be read; split it, or save it as CSV."

_PROGRAM = (sys.executable, "-I", "-m", "holdfast.web.spreadsheets.read_file")

_log = logging.getLogger(__name__)


class SheetReader:
    """One file at a time in each web process, so that many take no more memory than one."""

    def __init__(self) -> None:
        self._turn = asyncio.Semaphore()

    async def read(self, content: bytes) -> Reply:
        async with self._turn:
            reply = await _read(content)
        if reply.fault:
            raise InvalidInput.at(FILE_FIELD, reply.fault)
        return reply


async def _read(content: bytes) -> Reply:
    with tempfile.TemporaryFile() as file:
        await asyncio.to_thread(_fill, file, content)
        child = await asyncio.create_subprocess_exec(
            *_PROGRAM,
            stdin=file,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(),
        )
        try:
            async with asyncio.timeout(SECONDS_AT_MOST):
                told, said = await child.communicate()
        except TimeoutError:
            return Reply(fault=TOO_MUCH)
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
    if child.returncode == 0:
        return msgspec.msgpack.decode(told, type=Reply)
    _log.warning("a file could not be read", extra={"fields": {"exit": child.returncode, "said": _end(said)}})
    return Reply(fault=TOO_MUCH)


def _fill(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.seek(0)


def _end(said: bytes) -> str:
    return said[-500:].decode(errors="replace")
