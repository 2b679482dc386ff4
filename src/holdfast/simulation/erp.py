"""The developer's own system: it raises prices, mends descriptions and sends units again."""

from __future__ import annotations

import re
from collections.abc import Mapping
from random import Random
from typing import Any

from holdfast.simulation.calling import Answer
from holdfast.simulation.stage import Stage
from holdfast.simulation.story import Tone

WHO = "ERP"
_RISE = 1.01
_ROUNDED_TO = 1_000
_NOTE, _ARABIC_NOTE = "Now with a second parking space.", "ومعها الآن موقف سيارة ثانٍ."
_BETWEEN_LANGUAGES = re.compile(r"(\s\|\s|\n)")
_ARABIC = re.compile(r"[\u0600-\u06FF]")


class Erp:
    def __init__(self, stage: Stage, codes: list[str], random: Random) -> None:
        self._stage = stage
        self._codes = codes
        self._random = random

    async def work(self) -> None:
        acts = (self._raise_price, self._raise_price_of_a_held_unit, self._describe, self._send_again)
        while True:
            await self._stage.pace.pause(self._random.uniform(3, 7))
            await self._random.choice(acts)()

    async def _raise_price(self) -> None:
        await self._raise_price_of(self._random.choice(self._codes))

    async def _raise_price_of_a_held_unit(self) -> None:
        """As a system does that does not know who is about to buy."""
        held = [claim.code for claim in self._stage.ledger.held()]
        await self._raise_price_of(self._random.choice(held or self._codes))

    async def _raise_price_of(self, code: str) -> None:
        found = await self._read(code)
        if not found.is_good:
            return
        price = raised(float(found.document["priceSar"]))
        answer = await self._write("PATCH", code, {"priceSar": price}, found)
        if answer.is_good:
            self._stage.story.tell(WHO, f"{code} costs SAR {price:,} now", "priceChanges", Tone.PLAIN)

    async def _describe(self) -> None:
        code = self._random.choice(self._codes)
        found = await self._read(code)
        if not found.is_good:
            return
        text = noted(found.document["description"] or "")
        answer = await self._write("PATCH", code, {"description": text or None}, found)
        if answer.is_good:
            self._stage.story.tell(WHO, f"{code} is described anew", "descriptions", Tone.PLAIN)

    async def _send_again(self) -> None:
        """The whole unit as it was read. That stores nothing new, and the ETag tells."""
        code = self._random.choice(self._codes)
        found = await self._read(code)
        if not found.is_good:
            return
        answer = await self._write("PUT", code, without_status(found.document), found)
        if not answer.is_good:
            return
        if answer.etag != found.etag:
            self._stage.ledger.break_promise(f"{code} was sent as it was, and has another ETag.")
        self._stage.story.tell(WHO, f"{code} sent again, nothing new", "sentAgain", Tone.PLAIN)

    async def _read(self, code: str) -> Answer:
        return await self._stage.caller.with_key("GET", self._stage.unit_path("integration", code))

    async def _write(self, method: str, code: str, body: Mapping[str, Any], found: Answer) -> Answer:
        """Only on what was read: nobody's change is undone."""
        path = self._stage.unit_path("integration", code)
        answer = await self._stage.caller.with_key(method, path, body, If_Match=found.etag)
        if answer.problem == "terms-locked":
            what = f"{code} keeps its price: somebody is about to buy it"
            self._stage.story.refuse(WHO, what, answer.problem)
        elif not answer.is_good:
            self._stage.story.refuse(WHO, f"{code} has changed meanwhile", answer.problem)
        return answer


def raised(price: float) -> int:
    """Always by something."""
    return int((price * _RISE) // _ROUNDED_TO + 1) * _ROUNDED_TO


def noted(text: str) -> str:
    """With the note, or without if it is there: a hundred plays do not make it longer."""
    if _NOTE in text or _ARABIC_NOTE in text:
        return _without(_without(text, _NOTE), _ARABIC_NOTE)
    parts = _BETWEEN_LANGUAGES.split(text)
    return "".join(part if _BETWEEN_LANGUAGES.fullmatch(part) else _with_note(part) for part in parts)


def _with_note(part: str) -> str:
    return f"{part} {_ARABIC_NOTE if _ARABIC.search(part) else _NOTE}".strip()


def _without(text: str, note: str) -> str:
    return text.replace(f" {note}", "").replace(note, "")


def without_status(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "status"}
