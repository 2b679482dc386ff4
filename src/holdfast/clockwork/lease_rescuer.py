"""Brings back what a stopped worker has kept."""

from holdfast.operations.delivery_queue import DeliveryQueue

PAUSE_SECONDS = 1.0


class LeaseRescuer:
    name = "lease rescuer"

    def __init__(self, dispatching: DeliveryQueue) -> None:
        self._dispatching = dispatching

    async def run_once(self) -> float:
        return 0.0 if await self._dispatching.rescue() else PAUSE_SECONDS
