"""Staff: they close sales, refund deposits, extend holds, and take units off sale for a while."""

from random import Random

from holdfast.simulation.checks import Booking
from holdfast.simulation.client import ApiResponse
from holdfast.simulation.state import SimulationState

ACTOR = "Sales desk"
_ACTIONS = {
    "close-sale": ("{code} is sold to {buyer}", "sales"),
    "cancel": ("{buyer} withdraws, {code} is free again", "withdrawn"),
    "mark-refunded": ("{buyer} has the deposit back", "refunds"),
}


async def act_on_booking(state: SimulationState, booking: Booking, action: str) -> None:
    booking.is_ending = action == "cancel"
    response = await state.act_on_booking(booking, action)
    if response.is_success:
        text, count = _ACTIONS[action]
        state.activity.record(ACTOR, text.format(code=booking.code, buyer=booking.buyer), count)
    else:
        text = f"{action} of {booking.reference} for {booking.code} was refused: {response.problem}"
        state.activity.record(ACTOR, text, error=response.problem)


class SalesStaff:
    """The actions of staff that no buyer asks for."""

    def __init__(self, state: SimulationState, random: Random) -> None:
        self._state = state
        self._random = random
        self._off_sale: list[str] = []

    async def run(self) -> None:
        while True:
            await self._state.pause(self._random.uniform(4, 9))
            await self._random.choice((self._take_off_sale, self._extend_hold, self._extend_hold))()

    async def put_on_sale(self) -> None:
        """Put all units back that are still off sale."""
        while self._off_sale:
            code = self._off_sale.pop()
            response = await self._act_on_unit(code, "put-on-sale")
            if response.is_success:
                self._state.activity.record(ACTOR, f"{code} is on sale again", None)

    async def _take_off_sale(self) -> None:
        code = self._random.choice(self._state.project.codes)
        unit = await self._state.load_unit(code)
        if not unit.is_success or unit.document["status"] != "available" or self._state.is_nearly_sold_out:
            return
        # The condition protects a buyer who was quicker: their booking would end.
        response = await self._act_on_unit(code, "take-off-sale", If_Match=unit.etag)
        if not response.is_success:
            text = f"{code} was taken meanwhile, and stays on sale"
            self._state.activity.record(ACTOR, text, error=response.problem)
            return
        self._off_sale.append(code)
        self._state.activity.record(ACTOR, f"{code} is off sale for a viewing", "offSale")
        await self._state.pause(self._random.uniform(4, 8))
        await self.put_on_sale()

    async def _extend_hold(self) -> None:
        held = self._state.registry.held()
        candidates = [booking for booking in held if booking.may_be_extended and not booking.is_ending]
        if not candidates:
            return
        booking = self._random.choice(candidates)
        booking.may_be_extended = False
        # The status in the response is not used: the buyer may have gone on meanwhile.
        path = f"/v1/backoffice/bookings/{booking.reference}/extend"
        response = await self._state.client.request_with_key("POST", path)
        if response.is_success:
            self._state.set_expiry(booking, response)
            text = f"{booking.buyer} gets more time for {booking.code}"
            self._state.activity.record(ACTOR, text, "extended")
        else:
            text = f"{booking.buyer} needs no more time for {booking.code}"
            self._state.activity.record(ACTOR, text, error=response.problem)

    async def _act_on_unit(self, code: str, action: str, **headers: str) -> ApiResponse:
        path = f"{self._state.unit_path('backoffice', code)}/{action}"
        return await self._state.client.request_with_key("POST", path, None, **headers)
