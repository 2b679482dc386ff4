"""After the play: what the back office has written down of each unit, beside what buyers were told."""

from __future__ import annotations

import asyncio

from holdfast.simulation.calling import Answer
from holdfast.simulation.promises import faults_of, openings
from holdfast.simulation.stage import Stage

_ENTRIES = 1000


class Histories:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.units_checked = 0

    async def check(self) -> None:
        await asyncio.gather(*(self._check_unit(code) for code in self._stage.ledger.codes()))

    async def _check_unit(self, code: str) -> None:
        path = f"{self._stage.unit_path('backoffice', code)}/history?limit={_ENTRIES}"
        answer = await self._stage.caller.with_key("GET", path)
        if not answer.is_good:
            return
        self.units_checked += 1
        for fault in self._faults(code, answer):
            self._stage.ledger.break_promise(fault)

    def _faults(self, code: str, answer: Answer) -> list[str]:
        entries = list(reversed(answer.document["entries"]))
        faults, opened = faults_of(code, entries), openings(entries)
        is_whole = answer.document["nextCursor"] is None
        own = [claim.reference for claim in self._stage.ledger.claims.values() if claim.code == code]
        lost = [reference for reference in own if is_whole and reference not in opened]
        return [*faults, *(f"The hold {reference} of {code} is not in its history." for reference in lost)]
