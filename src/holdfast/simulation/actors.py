"""The actors: buyers with the payment system that confirms their deposits, staff, and the developer's ERP."""

import re
import secrets
from collections.abc import Mapping
from random import Random
from typing import Any

from holdfast.simulation.client import ApiResponse
from holdfast.simulation.plans import Behavior, BuyerPlan, choose_unit
from holdfast.simulation.state import Booking, SimulationState

PAYMENTS, STAFF, ERP = "Payments", "Sales desk", "ERP"
# Buyers do not wait longer than this for a hold to expire or to be allowed another hold.
MAX_WAIT_SECONDS = 20.0
_ATTEMPTS = 5
_LISTED_UNITS = 200
_RETRY_SECONDS = 1.0
_MIN_WAIT_SECONDS = 0.2
_STAFF_ACTIONS = {
    "close-sale": ("{code} is sold to {buyer}", "sales"),
    "cancel": ("{buyer} withdraws; {code} is available again", "withdrawn"),
    "mark-refunded": ("{buyer} got the deposit back", "refunds"),
}


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
                self._state.current.pop(self._name, None)

    async def _hold_unit(self) -> Booking | None:
        action, seconds = "looks for a unit", self._plan.searches_for
        for _ in range(_ATTEMPTS):
            code = await self._choose_unit()
            await self._pause(action, seconds)
            if code is None or self._state.is_nearly_sold_out:
                break
            action, seconds = "looks for another unit", _RETRY_SECONDS
            response = await self._request_hold(code)
            if response.is_success:
                return await self._add_booking(code, response)
            if response.status != 429:
                self._excluded.add(code)
                text = f"is too late for {code}; looks for another unit"
                self._state.record(self._name, text, "racesLost", response.problem)
                continue
            wait = response.retry_after or _RETRY_SECONDS
            text = f"may not hold {code} now; tries again in {wait:.0f} s"
            self._state.record(self._name, text, error=response.problem)
            if wait > MAX_WAIT_SECONDS:
                break
            self._state.current[self._name] = f"waits {wait:.0f} s to hold a unit", None
            await self._state.sleep(wait)
        self._state.record(self._name, "leaves without a unit", "leftWithoutUnit")
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
        booking = self._state.bookings.setdefault(booking.reference, booking)
        self._state.set_expiry(booking, response)
        self._state.record(self._name, f"holds {code}", "holds")
        await self._state.check_conflict(booking)
        return booking

    async def _follow_plan(self, booking: Booking) -> None:
        behavior = self._plan.behavior
        if behavior is Behavior.CANCELS:
            await self._pause("considers the unit", self._plan.signs_after, booking)
            await self._cancel(booking, f"cancels {booking.code}")
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
        self._state.current[self._name] = "has left", booking
        while booking.is_held and booking.expires_at is not None:
            left = booking.expires_at - self._state.elapsed()
            if left > MAX_WAIT_SECONDS:
                break
            # Staff may have extended the hold meanwhile, and clocks differ.
            await self._state.sleep(max(left, _MIN_WAIT_SECONDS))
            await self._state.update_booking(booking, await self._state.request_as_buyer("GET", booking))
        if booking.is_held:
            await self._pause("is away", 2 * self._plan.signs_after, booking)
            await self._cancel(booking, f"cancels {booking.code} by phone")
        else:
            self._state.record(self._name, f"let the hold of {booking.code} lapse", "lapsed")

    async def _sign(self, booking: Booking) -> bool:
        await self._pause("reads the agreement", self._plan.signs_after, booking)
        person = self._plan.person
        body = {"buyerName": person.name, "buyerEmail": person.email, "buyerPhone": person.phone}
        response = await self._state.request_as_buyer("POST", booking, "/sign", body)
        await self._state.update_booking(booking, response)
        text, too_late = f"signs for {booking.code}", f"is too late to sign for {booking.code}"
        return self._state.record_response(response, self._name, text, "signed", too_late)

    async def _pay_late(self, booking: Booking) -> None:
        booking.has_late_payment = True
        await self._cancel(booking, f"cancels {booking.code} after paying")
        await self._pause("has paid after cancelling", self._plan.pays_after, booking)
        await self._confirm_deposit(booking)
        booking.has_late_payment = False

    async def _confirm_deposit(self, booking: Booking) -> None:
        """Confirm the deposit, after which the booking is reserved, or refund-due if its unit is gone."""
        is_late = not booking.is_live
        response = await self._state.act_on_booking(booking, "confirm-deposit")
        code, buyer, count = booking.code, booking.buyer, "depositsLate"
        if not is_late:
            text, count = f"the deposit of {buyer} for {code} has arrived", "deposits"
        elif booking.status == "refund-due":
            text = f"the late deposit of {buyer} must be refunded: {code} is taken"
        else:
            text = f"the late deposit of {buyer} reserved {code}"
        rejected = f"could not confirm the deposit of {buyer} for {code}: {response.problem}"
        self._state.record_response(response, PAYMENTS, text, count, rejected)

    async def _confirm_deposit_again(self, booking: Booking) -> None:
        """Repeat the confirmation, as payment systems do if a response is lost. Nothing may change."""
        before = booking.status
        response = await self._state.act_on_booking(booking, "confirm-deposit")
        if response.is_success and booking.status != before:
            self._state.add_violation(f"A deposit reported twice made {booking.reference} {booking.status}.")
        text = f"reported the deposit for {booking.code} again; nothing changed"
        self._state.record(PAYMENTS, text, "depositsRepeated")

    async def _finish(self, booking: Booking) -> None:
        withdraws = self._plan.behavior is Behavior.WITHDRAWS
        text = "wants to withdraw" if withdraws else "waits for the sale"
        await self._pause(text, self._plan.closes_after, booking)
        if booking.status == "reserved":
            await act_as_staff(self._state, booking, "cancel" if withdraws else "close-sale")
        if booking.status == "refund-due":
            await self._pause("waits for the refund", self._plan.closes_after, booking)
            await act_as_staff(self._state, booking, "mark-refunded")

    async def _cancel(self, booking: Booking, text: str) -> None:
        response = await self._state.cancel_hold(booking)
        too_late = f"cannot cancel {booking.code} any more"
        self._state.record_response(response, self._name, text, "cancelled", too_late)

    async def _pause(self, text: str, seconds: float, booking: Booking | None = None) -> None:
        self._state.current[self._name] = text, booking
        await self._state.pause(seconds)


async def act_as_staff(state: SimulationState, booking: Booking, action: str) -> None:
    booking.is_ending = action == "cancel"
    response = await state.act_on_booking(booking, action)
    text, count = _STAFF_ACTIONS[action]
    text = text.format(code=booking.code, buyer=booking.buyer)
    rejected = f"{action} of {booking.reference} for {booking.code} was rejected: {response.problem}"
    state.record_response(response, STAFF, text, count, rejected)


class SalesStaff:
    """The actions of staff that no buyer asks for: they extend holds and take units off sale for a while."""

    def __init__(self, state: SimulationState, random: Random) -> None:
        self._state = state
        self._random = random
        self._off_sale: list[str] = []

    async def run(self) -> None:
        while True:
            await self._state.pause(self._random.uniform(4, 9))
            await self._random.choice((self._take_off_sale, self._extend_hold, self._extend_hold))()

    async def put_on_sale(self) -> None:
        while self._off_sale:
            code = self._off_sale.pop()
            response = await self._act_on_unit(code, "put-on-sale")
            if response.is_success:
                self._state.record(STAFF, f"{code} is on sale again")

    async def _take_off_sale(self) -> None:
        code = self._random.choice(self._state.project.codes)
        unit = await self._state.load_unit(code)
        if not unit.is_success or unit.document["status"] != "available" or self._state.is_nearly_sold_out:
            return
        # The condition protects a buyer who was quicker: their booking would end.
        response = await self._act_on_unit(code, "take-off-sale", If_Match=unit.etag)
        text, too_late = f"{code} is off sale for a viewing", f"{code} was held meanwhile; it stays on sale"
        if self._state.record_response(response, STAFF, text, "offSale", too_late):
            self._off_sale.append(code)
            await self._state.pause(self._random.uniform(4, 8))
            await self.put_on_sale()

    async def _extend_hold(self) -> None:
        held = self._state.held_bookings()
        candidates = [booking for booking in held if booking.may_be_extended and not booking.is_ending]
        if not candidates:
            return
        booking = self._random.choice(candidates)
        booking.may_be_extended = False
        # The status in the response is not used: the buyer may have gone on meanwhile.
        path = f"/v1/backoffice/bookings/{booking.reference}/extend"
        response = await self._state.client.request("POST", path)
        text = f"{booking.buyer} gets more time for {booking.code}"
        too_late = f"{booking.buyer} needs no more time for {booking.code}"
        if self._state.record_response(response, STAFF, text, "extended", too_late):
            self._state.set_expiry(booking, response)

    async def _act_on_unit(self, code: str, action: str, **headers: str) -> ApiResponse:
        path = f"{self._state.unit_path('backoffice', code)}/{action}"
        return await self._state.client.request("POST", path, None, **headers)


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
            held = [booking.code for booking in self._state.held_bookings()]
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
        text = f"{code} costs SAR {price:,} now"
        await self._write("PATCH", code, unit, {"priceSar": price}, text, "priceChanges")

    async def _edit_description(self, code: str, unit: ApiResponse) -> None:
        body = {"description": toggle_note(unit.document["description"] or "") or None}
        await self._write("PATCH", code, unit, body, f"{code} has a new description", "descriptions")

    async def _send_again(self, code: str, unit: ApiResponse) -> None:
        """Send the unit as it was read, which must not change its ETag."""
        body = {name: value for name, value in unit.document.items() if name != "status"}
        text = f"{code} was sent again, unchanged"
        response = await self._write("PUT", code, unit, body, text, "sentAgain")
        if response.is_success and response.etag != unit.etag:
            self._state.add_violation(f"{code} was sent unchanged and has another ETag.")

    async def _write(
        self, method: str, code: str, unit: ApiResponse, body: Mapping[str, Any], text: str, count: str
    ) -> ApiResponse:
        """Write the unit unless it has changed since it was read."""
        path = self._state.unit_path("integration", code)
        response = await self._state.client.request(method, path, body, If_Match=unit.etag)
        is_locked = response.problem == "terms-locked"
        reason = "keeps its price: a buyer has it" if is_locked else "has changed meanwhile"
        self._state.record_response(response, ERP, text, count, f"{code} {reason}")
        return response


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
