"""Staff: they close sales, pay back, give a buyer more time, and take a unit off sale for a while."""

from __future__ import annotations

from random import Random

from holdfast.simulation.calling import Answer
from holdfast.simulation.ledger import Claim
from holdfast.simulation.stage import Stage
from holdfast.simulation.story import Tone

WHO = "Sales desk"


async def close_sale(stage: Stage, claim: Claim) -> None:
    done = await _act(stage, claim, "close-sale")
    if done:
        stage.story.tell(WHO, f"{claim.code} is sold to {claim.buyer}", "sales")


async def cancel(stage: Stage, claim: Claim) -> None:
    claim.is_ending = True
    done = await _act(stage, claim, "cancel")
    if done:
        what = f"{claim.buyer} withdraws, {claim.code} is free again"
        stage.story.tell(WHO, what, "withdrawn", Tone.PLAIN)


async def mark_refunded(stage: Stage, claim: Claim) -> None:
    done = await _act(stage, claim, "mark-refunded")
    if done:
        stage.story.tell(WHO, f"{claim.buyer} has the deposit back", "refunds", Tone.PLAIN)


async def give_back(stage: Stage, claim: Claim) -> Answer:
    """What the buyer does with the token; also when a play ends and holds are left."""
    claim.is_ending = True
    path = f"/v1/storefront/bookings/{claim.reference}"
    answer = await stage.caller.ask("DELETE", path, Authorization=f"Bearer {claim.token}")
    await stage.settle(claim, answer)
    return answer


async def _act(stage: Stage, claim: Claim, action: str) -> bool:
    answer = await stage.caller.with_key("POST", f"/v1/backoffice/bookings/{claim.reference}/{action}")
    await stage.settle(claim, answer)
    if not answer.is_good:
        what = f"{action} of {claim.reference} for {claim.code} was refused: {answer.problem}"
        stage.story.refuse(WHO, what, answer.problem)
    return answer.is_good


class SalesDesk:
    """What staff do of their own accord, between what buyers need of them."""

    def __init__(self, stage: Stage, codes: list[str], random: Random) -> None:
        self._stage = stage
        self._codes = codes
        self._random = random
        self._off_sale: list[str] = []

    async def work(self) -> None:
        while True:
            await self._stage.pace.pause(self._random.uniform(4, 9))
            await self._random.choice((self._take_off_sale, self._extend, self._extend))()

    async def put_back(self) -> None:
        """All that is still off sale."""
        while self._off_sale:
            code = self._off_sale.pop()
            answer = await self._on_unit(code, "put-on-sale")
            if answer.is_good:
                self._stage.story.tell(WHO, f"{code} is on sale again", None, Tone.PLAIN)

    async def _take_off_sale(self) -> None:
        code = self._random.choice(self._codes)
        found = await self._stage.caller.with_key("GET", self._stage.unit_path("integration", code))
        if not found.is_good or found.document["status"] != "available" or self._stage.is_nearly_sold_out:
            return
        # Only what is free still: the booking of a buyer who was quicker would end.
        answer = await self._on_unit(code, "take-off-sale", If_Match=found.etag)
        if not answer.is_good:
            self._stage.story.refuse(WHO, f"{code} was taken meanwhile, and stays on sale", answer.problem)
            return
        self._off_sale.append(code)
        self._stage.story.tell(WHO, f"{code} is off sale for a viewing", "offSale", Tone.PLAIN)
        await self._stage.pace.pause(self._random.uniform(4, 8))
        await self.put_back()

    async def _extend(self) -> None:
        held = self._stage.ledger.held()
        asking = [claim for claim in held if claim.may_have_more_time and not claim.is_ending]
        if not asking:
            return
        claim = self._random.choice(asking)
        claim.may_have_more_time = False
        # What it says of the status is not taken down: the buyer may have gone on meanwhile.
        path = f"/v1/backoffice/bookings/{claim.reference}/extend"
        answer = await self._stage.caller.with_key("POST", path)
        if answer.is_good:
            self._stage.note_end(claim, answer)
            self._stage.story.tell(WHO, f"{claim.buyer} gets more time for {claim.code}", "extended")
        else:
            what = f"{claim.buyer} needs no more time for {claim.code}"
            self._stage.story.refuse(WHO, what, answer.problem)

    async def _on_unit(self, code: str, action: str, **headers: str) -> Answer:
        path = f"{self._stage.unit_path('backoffice', code)}/{action}"
        return await self._stage.caller.with_key("POST", path, None, **headers)
