"""One buyer, from the door to the keys, or to wherever the plan ends."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from holdfast.simulation import payments, sales_desk
from holdfast.simulation.calling import Answer
from holdfast.simulation.ledger import Claim
from holdfast.simulation.plan import BuyerCourse, BuyerPlan
from holdfast.simulation.stage import Stage
from holdfast.simulation.story import Tone
from holdfast.simulation.taste import Offer, favourite

_TRIES = 5
_OFFERS_AT_A_LOOK = 200
# Longer than that nobody sits and waits for a hold to lapse, or for a place among the holds.
LONGEST_WAIT_SECONDS = 20.0
_BREATH_SECONDS = 1.0
_SHORTEST_WAIT_SECONDS = 0.2


class Buyer:
    def __init__(self, stage: Stage, plan: BuyerPlan) -> None:
        self._stage = stage
        self._plan = plan
        self._who = plan.person.shown
        self._passed_over: set[str] = set()
        # Never of the seed: the same visitor would meet the holds that they let lapse in another play.
        self._cookie = f"holdfast_visitor={secrets.token_urlsafe(24)}"

    async def live(self) -> None:
        await self._stage.pace.pause(self._plan.arrives_after)
        async with self._stage.places:
            try:
                claim = await self._find_home()
                if claim is not None:
                    await self._go_on(claim)
            finally:
                self._stage.story.leave(self._who)

    async def _find_home(self) -> Claim | None:
        doing, seconds = "looks around", self._plan.looks_for
        for _ in range(_TRIES):
            offer = await self._choose()
            await self._pause(doing, seconds)
            if offer is None or self._stage.is_nearly_sold_out:
                break
            doing, seconds = "looks on", _BREATH_SECONDS
            answer = await self._ask_for(offer)
            if answer.is_good:
                return await self._take(offer, answer)
            if not await self._bear(offer, answer):
                break
        self._tell("leaves with nothing", "turnedAway", Tone.PLAIN)
        return None

    async def _choose(self) -> Offer | None:
        path = f"{self._stage.units_path('storefront')}?status=available&limit={_OFFERS_AT_A_LOOK}"
        answer = await self._stage.caller.ask("GET", path, Cookie=self._cookie)
        if not answer.is_good:
            return None
        offers = [Offer.read(unit) for unit in answer.document["units"]]
        return (
            None
            if self._is_little(offers, answer)
            else favourite(offers, self._plan.taste, self._passed_over)
        )

    def _is_little(self, offers: Sequence[Offer], answer: Answer) -> bool:
        """Others buy too, while this plays."""
        return answer.document["nextCursor"] is None and len(offers) <= self._stage.keep

    async def _ask_for(self, offer: Offer) -> Answer:
        path = f"{self._stage.unit_path('storefront', offer.code)}/hold"
        key = secrets.token_urlsafe(24)
        self._stage.asking += 1
        try:
            return await self._stage.caller.ask("POST", path, Cookie=self._cookie, Idempotency_Key=key)
        finally:
            self._stage.asking -= 1

    async def _take(self, offer: Offer, answer: Answer) -> Claim:
        document = answer.document
        claim = Claim(document["reference"], offer.code, document["token"], self._who)
        rival = self._stage.ledger.open(claim)
        self._stage.note_end(claim, answer)
        self._tell(f"holds {offer.code}", "holds")
        if rival is not None:
            await self._stage.compare(claim, rival)
        return claim

    async def _bear(self, offer: Offer, answer: Answer) -> bool:
        """Whether one tries again after this refusal."""
        if answer.status == 429:
            return await self._wait_for_a_place(offer, answer)
        self._passed_over.add(offer.code)
        self._refuse(f"is too late for {offer.code}, and looks on", answer, "racesLost")
        return True

    async def _wait_for_a_place(self, offer: Offer, answer: Answer) -> bool:
        wait = answer.retry_after or _BREATH_SECONDS
        self._refuse(f"may not hold {offer.code} now; to be tried again in {wait:.0f} s", answer)
        if wait > LONGEST_WAIT_SECONDS:
            return False
        self._show(f"waits {wait:.0f} s for a place")
        await self._stage.pace.wait(wait)
        return True

    async def _go_on(self, claim: Claim) -> None:
        ways = {
            BuyerCourse.LETS_GO: self._let_go,
            BuyerCourse.WALKS_AWAY: self._walk_away,
            BuyerCourse.PAYS_LATE: self._pay_late,
        }
        await ways.get(self._plan.course, self._buy)(claim)

    async def _buy(self, claim: Claim) -> None:
        if not await self._sign(claim):
            return
        await self._pause("pays the deposit", self._plan.pays_after, claim)
        await payments.confirm_deposit(self._stage, claim)
        if self._plan.course is BuyerCourse.PAYS_TWICE:
            await payments.confirm_again(self._stage, claim)
        await self._finish(claim)

    async def _pay_late(self, claim: Claim) -> None:
        if not await self._sign(claim):
            return
        claim.has_money_coming = True
        await self._cancel(claim, f"lets {claim.code} go, with the money on its way")
        await self._pause("has paid, too late", self._plan.pays_after, claim)
        await payments.confirm_deposit(self._stage, claim)
        claim.has_money_coming = False
        await self._finish(claim)

    async def _finish(self, claim: Claim) -> None:
        withdraws = self._plan.course is BuyerCourse.WITHDRAWS
        await self._pause("wants out" if withdraws else "waits for the keys", self._plan.closes_after, claim)
        if claim.status == "reserved":
            await (sales_desk.cancel if withdraws else sales_desk.close_sale)(self._stage, claim)
        if claim.status == "refund-due":
            await self._pause("waits for the refund", self._plan.closes_after, claim)
            await sales_desk.mark_refunded(self._stage, claim)

    async def _let_go(self, claim: Claim) -> None:
        await self._pause("thinks it over", self._plan.signs_after, claim)
        await self._cancel(claim, f"lets {claim.code} go")

    async def _walk_away(self, claim: Claim) -> None:
        claim.may_have_more_time = False
        self._show("has walked away", claim)
        while claim.is_held and (left := self._stage.seconds_left(claim)) is not None:
            if left > LONGEST_WAIT_SECONDS:
                break
            # Staff may have given them more time meanwhile, and clocks differ.
            await self._stage.pace.wait(max(left, _SHORTEST_WAIT_SECONDS))
            await self._stage.settle(claim, await self._stage.of_claim(claim))
        if claim.is_held:
            await self._pause("has gone for lunch", 2 * self._plan.signs_after, claim)
            await self._cancel(claim, f"cancels {claim.code} by telephone")
        else:
            self._tell(f"has let {claim.code} lapse", "lapsed", Tone.PLAIN)

    async def _sign(self, claim: Claim) -> bool:
        await self._pause("reads the agreement", self._plan.signs_after, claim)
        path = f"/v1/storefront/bookings/{claim.reference}/sign"
        buyer = self._plan.person.as_buyer()
        answer = await self._stage.caller.ask("POST", path, buyer, Authorization=f"Bearer {claim.token}")
        await self._stage.settle(claim, answer)
        if not answer.is_good:
            self._refuse(f"comes too late to sign for {claim.code}", answer)
            return False
        self._tell(f"signs for {claim.code}", "signed")
        return True

    async def _cancel(self, claim: Claim, what: str) -> None:
        answer = await sales_desk.give_back(self._stage, claim)
        if answer.is_good:
            self._tell(what, "letGo", Tone.PLAIN)
        else:
            self._refuse(f"cannot let {claim.code} go any more", answer)

    async def _pause(self, doing: str, seconds: float, claim: Claim | None = None) -> None:
        self._show(doing, claim)
        await self._stage.pace.pause(seconds)

    def _show(self, doing: str, claim: Claim | None = None) -> None:
        self._stage.story.show(self._who, doing, claim)

    def _tell(self, what: str, count: str | None, tone: Tone = Tone.GOOD) -> None:
        self._stage.story.tell(self._who, what, count, tone)

    def _refuse(self, what: str, answer: Answer, count: str | None = None) -> None:
        self._stage.story.refuse(self._who, what, answer.problem, count)
