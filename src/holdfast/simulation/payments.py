"""The payment system: it says that the money is there, now and then twice, now and then too late."""

from __future__ import annotations

from holdfast.simulation.ledger import Claim
from holdfast.simulation.stage import Stage
from holdfast.simulation.story import Tone

WHO = "Payments"


async def confirm_deposit(stage: Stage, claim: Claim) -> None:
    """The booking is reserved, or refund-due if its unit is gone."""
    was_over = not claim.is_live
    path = f"/v1/backoffice/bookings/{claim.reference}/confirm-deposit"
    answer = await stage.caller.with_key("POST", path)
    await stage.settle(claim, answer)
    if not answer.is_good:
        what = f"cannot place the deposit of {claim.buyer} for {claim.code}: {answer.problem}"
        stage.story.refuse(WHO, what, answer.problem)
    elif was_over:
        _tell_late(stage, claim)
    else:
        stage.story.tell(WHO, f"the deposit of {claim.buyer} for {claim.code} is there", "deposits")


async def confirm_again(stage: Stage, claim: Claim) -> None:
    """As payment systems do when an answer gets lost. Nothing may come of it."""
    before = claim.status
    path = f"/v1/backoffice/bookings/{claim.reference}/confirm-deposit"
    answer = await stage.caller.with_key("POST", path)
    await stage.settle(claim, answer)
    if answer.is_good and claim.status != before:
        stage.ledger.break_promise(f"A deposit told twice made {claim.reference} {claim.status}.")
    what = f"told the deposit for {claim.code} once more, and nothing changed"
    stage.story.tell(WHO, what, "depositsRepeated", Tone.PLAIN)


def _tell_late(stage: Stage, claim: Claim) -> None:
    if claim.status == "refund-due":
        what = f"the late deposit of {claim.buyer} is owed back: {claim.code} is gone"
    else:
        what = f"the late deposit of {claim.buyer} still got {claim.code}"
    stage.story.tell(WHO, what, "depositsLate")
