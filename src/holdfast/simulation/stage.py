"""What all who play share: the project, the ledger, the story, the pace, and the end."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from holdfast.simulation.calling import Answer, Caller
from holdfast.simulation.ledger import Claim, Ledger
from holdfast.simulation.refused import Stopped
from holdfast.simulation.story import Story

# All buyers come from one address, which may hold 20 units at a time; some are left to people who watch.
AT_ONCE = 15


class Pace:
    def __init__(self, factor: float) -> None:
        self._factor = factor
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def end(self) -> None:
        self._over.set()

    async def until_over(self) -> None:
        await self._over.wait()

    async def pause(self, seconds: float) -> None:
        """So many seconds at pace 1."""
        await self.wait(seconds / self._factor)

    async def wait(self, seconds: float) -> None:
        """Seconds of the clock, for what the other side has said."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), seconds)
        if self.is_over:
            raise Stopped


@dataclass
class Stage:
    caller: Caller
    slug: str
    story: Story
    pace: Pace
    on_sale: int
    """Units that could be bought when the play began; a share of them stays."""
    keep: int
    asking: int = 0
    """Holds that are asked for and not answered."""
    ledger: Ledger = field(default_factory=Ledger)
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    @property
    def is_nearly_sold_out(self) -> bool:
        return self.on_sale - self.ledger.wanted_count() - self.asking <= self.keep

    def unit_path(self, surface: str, code: str) -> str:
        return f"/v1/{surface}/projects/{quote(self.slug, safe='')}/units/{_segment(code)}"

    def units_path(self, surface: str) -> str:
        return f"/v1/{surface}/projects/{quote(self.slug, safe='')}/units"

    def note_end(self, claim: Claim, answer: Answer) -> None:
        """By the clock of who told it, which is cut to the second: rather too late than too early."""
        until, now = datetime.fromisoformat(answer.document["holdExpiresAt"]), answer.answered_at
        claim.ends_at = None if now is None else self.story.elapsed() + (until - now).total_seconds()

    def seconds_left(self, claim: Claim) -> float | None:
        return None if claim.ends_at is None else claim.ends_at - self.story.elapsed()

    async def of_claim(self, claim: Claim) -> Answer:
        path = f"/v1/storefront/bookings/{claim.reference}"
        return await self.caller.ask("GET", path, Authorization=f"Bearer {claim.token}")

    async def settle(self, claim: Claim, answer: Answer) -> None:
        """What became of a booking: by the answer if it tells, else by asking."""
        found = answer if answer.is_good and "status" in answer.document else await self.of_claim(claim)
        if not found.is_good:
            return
        rival = self.ledger.move(claim, str(found.document["status"]))
        if rival is not None:
            await self.compare(claim, rival)

    async def compare(self, claim: Claim, rival: Claim) -> None:
        """Two seem to have one unit. Time may have ended one of them, which nobody was told."""
        for one in (rival, claim):
            found = await self.of_claim(one)
            if found.is_good:
                one.status = str(found.document["status"])
        if claim.is_live and rival.is_live:
            both = f"{rival.reference} and {claim.reference}"
            self.ledger.break_promise(f"{claim.code} was given to two buyers at once: {both}.")


def _segment(code: str) -> str:
    # Some clients take a segment of dots for a way up.
    return quote(code, safe="").replace(".", "%2E")
