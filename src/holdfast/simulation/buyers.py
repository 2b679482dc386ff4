"""A buyer, from the search for a unit to the sale, and the payment system that confirms deposits."""

import secrets

from holdfast.simulation.checks import Booking
from holdfast.simulation.client import ApiResponse
from holdfast.simulation.plans import Behavior, BuyerPlan, choose_unit
from holdfast.simulation.sales_staff import act_on_booking
from holdfast.simulation.state import SimulationState

PAYMENTS = "Payments"
# Buyers do not wait longer than this for a hold to expire or to be allowed another hold.
MAX_WAIT_SECONDS = 20.0
_ATTEMPTS = 5
_LISTED_UNITS = 200
_RETRY_SECONDS = 1.0
_MIN_WAIT_SECONDS = 0.2


class Buyer:
    def __init__(self, state: SimulationState, plan: BuyerPlan) -> None:
        self._state = state
        self._plan = plan
        self._name = plan.person.latin_name
        self._excluded: set[str] = set()
        # Not from the seed: the same visitor would meet the holds that they let expire in another run.
        self._cookie = f"holdfast_visitor={secrets.token_urlsafe(24)}"

    async def run(self) -> None:
        await self._state.pause(self._plan.arrives_after)
        async with self._state.slots:
            try:
                booking = await self._hold_unit()
                if booking is not None:
                    await self._follow_plan(booking)
            finally:
                self._state.activity.current.pop(self._name, None)

    async def _hold_unit(self) -> Booking | None:
        text, seconds = "looks around", self._plan.searches_for
        for _ in range(_ATTEMPTS):
            code = await self._choose_unit()
            await self._pause(text, seconds)
            if code is None or self._state.is_nearly_sold_out:
                break
            text, seconds = "looks on", _RETRY_SECONDS
            response = await self._request_hold(code)
            if response.is_success:
                return await self._add_booking(code, response)
            if response.status == 429:
                if not await self._wait_for_hold_limit(code, response):
                    break
            else:
                self._excluded.add(code)
                self._record(f"is too late for {code}, and looks on", "racesLost", response)
        self._record("leaves with nothing", "turnedAway")
        return None

    async def _choose_unit(self) -> str | None:
        path = f"{self._state.units_path('storefront')}?status=available&limit={_LISTED_UNITS}"
        response = await self._state.client.request("GET", path, Cookie=self._cookie)
        if not response.is_success:
            return None
        units = response.document["units"]
        # Real buyers take units too while the simulation runs.
        if response.document["nextCursor"] is None and len(units) <= self._state.project.reserve:
            return None
        return choose_unit(units, self._plan.bedrooms, self._plan.budget, self._excluded)

    async def _request_hold(self, code: str) -> ApiResponse:
        path = f"{self._state.unit_path('storefront', code)}/hold"
        key = secrets.token_urlsafe(24)
        self._state.pending_holds += 1
        try:
            return await self._state.client.request("POST", path, Cookie=self._cookie, Idempotency_Key=key)
        finally:
            self._state.pending_holds -= 1

    async def _add_booking(self, code: str, response: ApiResponse) -> Booking:
        booking = Booking(response.document["reference"], code, response.document["token"], self._name)
        conflict = self._state.registry.add(booking)
        self._state.set_expiry(booking, response)
        self._record(f"holds {code}", "holds")
        if conflict is not None:
            await self._state.check_conflict(booking, conflict)
        return booking

    async def _wait_for_hold_limit(self, code: str, response: ApiResponse) -> bool:
        wait = response.retry_after or _RETRY_SECONDS
        self._record(f"may not hold {code} now; to be tried again in {wait:.0f} s", response=response)
        if wait > MAX_WAIT_SECONDS:
            return False
        self._state.activity.set_current(self._name, f"waits {wait:.0f} s for a place")
        await self._state.sleep(wait)
        return True

    async def _follow_plan(self, booking: Booking) -> None:
        behavior = self._plan.behavior
        if behavior is Behavior.CANCELS:
            await self._pause("thinks it over", self._plan.signs_after, booking)
            await self._cancel(booking, f"lets {booking.code} go")
        elif behavior is Behavior.WALKS_AWAY:
            await self._walk_away(booking)
        elif await self._sign(booking):
            if behavior is Behavior.PAYS_LATE:
                await self._pay_late(booking)
            else:
                await self._pause("pays the deposit", self._plan.pays_after, booking)
                await self._confirm_deposit(booking)
            if behavior is Behavior.PAYS_TWICE:
                await self._confirm_deposit_again(booking)
            await self._finish(booking)

    async def _walk_away(self, booking: Booking) -> None:
        booking.may_be_extended = False
        self._state.activity.set_current(self._name, "has walked away", booking)
        while booking.is_held and booking.expires_at is not None:
            left = booking.expires_at - self._state.activity.elapsed()
            if left > MAX_WAIT_SECONDS:
                break
            # Staff may have extended the hold meanwhile, and clocks differ.
            await self._state.sleep(max(left, _MIN_WAIT_SECONDS))
            response = await self._state.request_as_buyer("GET", booking)
            await self._state.update_booking(booking, response)
        if booking.is_held:
            await self._pause("has gone for lunch", 2 * self._plan.signs_after, booking)
            await self._cancel(booking, f"cancels {booking.code} by telephone")
        else:
            self._record(f"has let {booking.code} lapse", "lapsed")

    async def _sign(self, booking: Booking) -> bool:
        await self._pause("reads the agreement", self._plan.signs_after, booking)
        person = self._plan.person
        body = {"buyerName": person.name, "buyerEmail": person.email, "buyerPhone": person.phone}
        response = await self._state.request_as_buyer("POST", booking, "/sign", body)
        await self._state.update_booking(booking, response)
        if response.is_success:
            self._record(f"signs for {booking.code}", "signed")
        else:
            self._record(f"comes too late to sign for {booking.code}", response=response)
        return response.is_success

    async def _pay_late(self, booking: Booking) -> None:
        booking.has_late_payment = True
        await self._cancel(booking, f"lets {booking.code} go, with the money on its way")
        await self._pause("has paid, too late", self._plan.pays_after, booking)
        await self._confirm_deposit(booking)
        booking.has_late_payment = False

    async def _confirm_deposit(self, booking: Booking) -> None:
        """Confirm the deposit, after which the booking is reserved, or refund-due if its unit is gone."""
        is_late = not booking.is_live
        response = await self._state.act_on_booking(booking, "confirm-deposit")
        activity, code, buyer = self._state.activity, booking.code, booking.buyer
        if not response.is_success:
            text = f"cannot place the deposit of {buyer} for {code}: {response.problem}"
            activity.record(PAYMENTS, text, error=response.problem)
        elif not is_late:
            activity.record(PAYMENTS, f"the deposit of {buyer} for {code} is there", "deposits")
        elif booking.status == "refund-due":
            text = f"the late deposit of {buyer} is owed back: {code} is gone"
            activity.record(PAYMENTS, text, "depositsLate")
        else:
            activity.record(PAYMENTS, f"the late deposit of {buyer} still got {code}", "depositsLate")

    async def _confirm_deposit_again(self, booking: Booking) -> None:
        """Repeat the confirmation, as payment systems do if a response is lost. Nothing may change."""
        before = booking.status
        response = await self._state.act_on_booking(booking, "confirm-deposit")
        if response.is_success and booking.status != before:
            sentence = f"A deposit told twice made {booking.reference} {booking.status}."
            self._state.registry.add_violation(sentence)
        text = f"told the deposit for {booking.code} once more, and nothing changed"
        self._state.activity.record(PAYMENTS, text, "depositsRepeated")

    async def _finish(self, booking: Booking) -> None:
        withdraws = self._plan.behavior is Behavior.WITHDRAWS
        text = "wants out" if withdraws else "waits for the keys"
        await self._pause(text, self._plan.closes_after, booking)
        if booking.status == "reserved":
            action = "cancel" if withdraws else "close-sale"
            await act_on_booking(self._state, booking, action)
        if booking.status == "refund-due":
            await self._pause("waits for the refund", self._plan.closes_after, booking)
            await act_on_booking(self._state, booking, "mark-refunded")

    async def _cancel(self, booking: Booking, text: str) -> None:
        response = await self._state.cancel_hold(booking)
        if response.is_success:
            self._record(text, "letGo")
        else:
            self._record(f"cannot let {booking.code} go any more", response=response)

    async def _pause(self, text: str, seconds: float, booking: Booking | None = None) -> None:
        self._state.activity.set_current(self._name, text, booking)
        await self._state.pause(seconds)

    def _record(self, text: str, count: str | None = None, response: ApiResponse | None = None) -> None:
        """Record an event; ``response`` rejected the request."""
        self._state.activity.record(self._name, text, count, response and response.problem)
