"""The state that buyers, staff and the ERP share: the client, the project, the bookings and the clock."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from holdfast.simulation.checks import Booking, BookingRegistry
from holdfast.simulation.client import ApiClient, ApiResponse
from holdfast.simulation.project import Project
from holdfast.simulation.report import ActivityLog

# All buyers come from one address, which may hold 20 units at a time; some are left to people who watch.
MAX_BUYERS_AT_ONCE = 15


class SimulationStopped(Exception):
    """The simulation has ended; whoever waits leaves."""


@dataclass
class SimulationState:
    client: ApiClient
    project: Project
    pace: float
    pending_holds: int = 0
    """Requested holds without a response yet."""
    activity: ActivityLog = field(default_factory=ActivityLog)
    registry: BookingRegistry = field(default_factory=BookingRegistry)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_BUYERS_AT_ONCE))

    @property
    def is_nearly_sold_out(self) -> bool:
        left = self.project.available - self.registry.taken_count() - self.pending_holds
        return left <= self.project.reserve

    async def pause(self, seconds: float) -> None:
        """Wait for so many seconds at pace 1."""
        await self.sleep(seconds / self.pace)

    async def sleep(self, seconds: float) -> None:
        """Wait in real time, for waits that the server asks for."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.stopped.wait(), seconds)
        if self.stopped.is_set():
            raise SimulationStopped

    def units_path(self, surface: str) -> str:
        return f"/v1/{surface}/projects/{quote(self.project.slug, safe='')}/units"

    def unit_path(self, surface: str, code: str) -> str:
        # HTTP clients resolve a segment of dots as a relative path.
        return f"{self.units_path(surface)}/{quote(code, safe='').replace('.', '%2E')}"

    async def load_unit(self, code: str) -> ApiResponse:
        return await self.client.request_with_key("GET", self.unit_path("integration", code))

    async def request_as_buyer(
        self, method: str, booking: Booking, action: str = "", body: Mapping[str, Any] | None = None
    ) -> ApiResponse:
        path = f"/v1/storefront/bookings/{booking.reference}{action}"
        return await self.client.request(method, path, body, Authorization=f"Bearer {booking.token}")

    async def cancel_hold(self, booking: Booking) -> ApiResponse:
        booking.is_ending = True
        response = await self.request_as_buyer("DELETE", booking)
        await self.update_booking(booking, response)
        return response

    async def act_on_booking(self, booking: Booking, action: str) -> ApiResponse:
        path = f"/v1/backoffice/bookings/{booking.reference}/{action}"
        response = await self.client.request_with_key("POST", path)
        await self.update_booking(booking, response)
        return response

    async def update_booking(self, booking: Booking, response: ApiResponse) -> None:
        """Take the status from the response, or load it if the response does not have it."""
        if not (response.is_success and "status" in response.document):
            response = await self.request_as_buyer("GET", booking)
        if response.is_success:
            conflict = self.registry.update_status(booking, str(response.document["status"]))
            if conflict is not None:
                await self.check_conflict(booking, conflict)

    async def check_conflict(self, booking: Booking, other: Booking) -> None:
        """Load two bookings that seem to have one unit: one may have expired meanwhile."""
        for each in (other, booking):
            response = await self.request_as_buyer("GET", each)
            if response.is_success:
                each.status = str(response.document["status"])
        if booking.is_live and other.is_live:
            both = f"{other.reference} and {booking.reference}"
            self.registry.add_violation(f"{booking.code} was given to two buyers at once: {both}.")

    def set_expiry(self, booking: Booking, response: ApiResponse) -> None:
        """Estimate by the server's clock, whose seconds are cut: rather too late than too early."""
        expires_at, now = datetime.fromisoformat(response.document["holdExpiresAt"]), response.date
        left = None if now is None else (expires_at - now).total_seconds()
        booking.expires_at = None if left is None else self.activity.elapsed() + left
