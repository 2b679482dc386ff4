"""Counts the deliveries that ended, hour by hour, so that no page has to."""

from holdfast.operations.delivery_queue import DeliveryHours

PAUSE_SECONDS = 5.0


class HourCounter:
    name = "hour counter"

    def __init__(self, hours: DeliveryHours) -> None:
        self._hours = hours

    async def run_once(self) -> float:
        return 0.0 if await self._hours.count_on() else PAUSE_SECONDS
