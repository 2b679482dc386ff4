"""Which key opens what, remembered for so short a time that a revocation bites within a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from holdfast.domain.api_key import Key, is_well_formed, key_hash
from holdfast.domain.errors import DatabaseAway, KeyRefused
from holdfast.storage import api_keys
from holdfast.storage.database import Database

REMEMBERED_SECONDS = 0.5
REMEMBERED_KEYS = 10_000
USE_NOTED_EVERY_SECONDS = 60.0


class _Remembered(NamedTuple):
    key: Key | None
    until: float


class KeyRing:
    """Looks a key up at most twice a second, however many requests carry it."""

    def __init__(self, database: Database, monotonic: Callable[[], float]) -> None:
        self._database = database
        self._monotonic = monotonic
        self._remembered: dict[str, _Remembered] = {}
        self._asking: dict[str, asyncio.Task[Key | None]] = {}
        self._use_noted_at: dict[str, float] = {}
        self._notes: set[asyncio.Task[None]] = set()

    def remembered(self, text: str) -> Key | None:
        """The key, if it was found a moment ago; ``find`` knows the rest."""
        remembered = self._remembered.get(text)
        return None if remembered is None or remembered.until <= self._monotonic() else remembered.key

    async def find(self, text: str) -> Key:
        remembered = self._remembered.get(text)
        if remembered is None or remembered.until <= self._monotonic():
            key = await self._ask(text)
        else:
            key = remembered.key
        if key is None:
            raise KeyRefused
        return key

    async def close(self) -> None:
        if self._notes:
            await asyncio.wait(self._notes)

    async def _ask(self, text: str) -> Key | None:
        """Requests that ask for the same key at the same time share one look-up."""
        if not is_well_formed(text):
            return None
        task = self._asking.get(text)
        if task is None:
            task = self._asking[text] = asyncio.create_task(self._look_up(text))
            task.add_done_callback(lambda _: self._asking.pop(text, None))
        return await asyncio.shield(task)

    async def _look_up(self, text: str) -> Key | None:
        # The time before the look-up: what was read may be as old as that.
        asked_at = self._monotonic()
        async with self._database.reading() as connection:
            live = await api_keys.find_live(connection, key_hash(text))
        if len(self._remembered) >= REMEMBERED_KEYS:
            self._remembered.clear()
        if live is None:
            self._remembered[text] = _Remembered(None, asked_at + REMEMBERED_SECONDS)
            return None
        left = REMEMBERED_SECONDS if live.seconds_left is None else live.seconds_left
        self._remembered[text] = _Remembered(live.key, asked_at + min(REMEMBERED_SECONDS, left))
        self._note_use(text, live.key)
        return live.key

    def _note_use(self, text: str, key: Key) -> None:
        now = self._monotonic()
        if now - self._use_noted_at.get(text, -USE_NOTED_EVERY_SECONDS) < USE_NOTED_EVERY_SECONDS:
            return
        self._use_noted_at[text] = now
        task = asyncio.create_task(self._write_use(key))
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def _write_use(self, key: Key) -> None:
        try:
            async with self._database.writing() as connection:
                await api_keys.note_use(connection, key.id)
        except DatabaseAway:
            pass
