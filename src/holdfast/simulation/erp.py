"""The developer's ERP: it raises prices, edits descriptions and sends units again."""

import re
from collections.abc import Mapping
from random import Random
from typing import Any

from holdfast.simulation.client import ApiResponse
from holdfast.simulation.state import SimulationState

ACTOR = "ERP"
_PRICE_FACTOR = 1.01
_PRICE_STEP = 1_000
_NOTE, _ARABIC_NOTE = "Now with a second parking space.", "ومعها الآن موقف سيارة ثانٍ."
_LANGUAGE_SEPARATOR = re.compile(r"(\s\|\s|\n)")
_ARABIC = re.compile(r"[\u0600-\u06FF]")


class Erp:
    def __init__(self, state: SimulationState, random: Random) -> None:
        self._state = state
        self._random = random

    async def run(self) -> None:
        codes = self._state.project.codes
        while True:
            await self._state.pause(self._random.uniform(3, 7))
            held = [booking.code for booking in self._state.registry.held()]
            # The ERP does not know which units somebody is about to buy.
            action, choices = self._random.choice(
                (
                    (self._raise_price, codes),
                    (self._raise_price, held or codes),
                    (self._edit_description, codes),
                    (self._send_again, codes),
                )
            )
            code = self._random.choice(choices)
            unit = await self._state.load_unit(code)
            if unit.is_success:
                await action(code, unit)

    async def _raise_price(self, code: str, unit: ApiResponse) -> None:
        price = raise_price(float(unit.document["priceSar"]))
        if await self._write("PATCH", code, {"priceSar": price}, unit):
            self._state.activity.record(ACTOR, f"{code} costs SAR {price:,} now", "priceChanges")

    async def _edit_description(self, code: str, unit: ApiResponse) -> None:
        text = toggle_note(unit.document["description"] or "")
        if await self._write("PATCH", code, {"description": text or None}, unit):
            self._state.activity.record(ACTOR, f"{code} is described anew", "descriptions")

    async def _send_again(self, code: str, unit: ApiResponse) -> None:
        """Send the unit as it was read, which must not change its ETag."""
        body = {name: value for name, value in unit.document.items() if name != "status"}
        response = await self._write("PUT", code, body, unit)
        if response is None:
            return
        if response.etag != unit.etag:
            self._state.registry.add_violation(f"{code} was sent as it was, and has another ETag.")
        self._state.activity.record(ACTOR, f"{code} sent again, nothing new", "sentAgain")

    async def _write(
        self, method: str, code: str, body: Mapping[str, Any], unit: ApiResponse
    ) -> ApiResponse | None:
        """Write the unit unless it has changed since it was read."""
        path = self._state.unit_path("integration", code)
        response = await self._state.client.request_with_key(method, path, body, If_Match=unit.etag)
        if response.is_success:
            return response
        is_locked = response.problem == "terms-locked"
        reason = "keeps its price: somebody is about to buy it" if is_locked else "has changed meanwhile"
        self._state.activity.record(ACTOR, f"{code} {reason}", error=response.problem)
        return None


def raise_price(price: float) -> int:
    """Return a higher, round price."""
    return int((price * _PRICE_FACTOR) // _PRICE_STEP + 1) * _PRICE_STEP


def toggle_note(text: str) -> str:
    """Add the note to each language, or remove it, so that descriptions do not grow with every run."""
    if _NOTE in text or _ARABIC_NOTE in text:
        for note in (_NOTE, _ARABIC_NOTE):
            text = text.replace(f" {note}", "").replace(note, "")
        return text
    parts = _LANGUAGE_SEPARATOR.split(text)
    # Every second part is a separator.
    parts[::2] = [f"{part} {_ARABIC_NOTE if _ARABIC.search(part) else _NOTE}".strip() for part in parts[::2]]
    return "".join(parts)
