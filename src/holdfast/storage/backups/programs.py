"""PostgreSQL's own programs as clients: started, listened to, never left behind."""

from __future__ import annotations

import asyncio
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from holdfast.storage.embedded.programs import environment, folder_of
from holdfast.storage.refused import BackupRefused

NEWEST_SERVER = 18
_CHUNK = 1 << 20


class Program:
    def __init__(self, name: str, process: Process) -> None:
        self._name = name
        self._process = process
        assert process.stderr is not None
        self._complaints = asyncio.create_task(process.stderr.read())

    async def chunks(self) -> AsyncIterator[bytes]:
        assert self._process.stdout is not None
        while chunk := await self._process.stdout.read(_CHUNK):
            yield chunk

    async def line(self) -> bytes:
        assert self._process.stdout is not None
        return await self._process.stdout.readline()

    async def take(self, chunk: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(chunk)
        await self._process.stdin.drain()

    def end_input(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def finish(self) -> None:
        """Once it has ended by itself; refused if it did not end well."""
        complaints = (await self._complaints).decode(errors="replace")
        if await self._process.wait() != 0:
            raise BackupRefused(f"PostgreSQL's {self._name} failed: {_first_of(complaints)}")

    async def end(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()
        await self._complaints


@asynccontextmanager
async def running(
    name: str, door: Mapping[str, str], *arguments: str, takes_input: bool = True
) -> AsyncIterator[Program]:
    """In a session of its own, so that the terminal's Ctrl-C ends it through us, in order."""
    process = await asyncio.create_subprocess_exec(
        folder_of(NEWEST_SERVER) / "bin" / name,
        *arguments,
        stdin=PIPE if takes_input else DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        env={**environment(), **door},
        limit=_CHUNK,
        start_new_session=True,
    )
    program = Program(name, process)
    try:
        yield program
    finally:
        await program.end()


def _first_of(complaints: str) -> str:
    """The first error is the reason; what follows it are consequences."""
    lines = [line.strip() for line in complaints.splitlines() if line.strip()]
    errors = [line for line in lines if "error:" in line.lower()]
    return (errors or lines or ["it does not say why"])[0]
