"""How endpoints fare, as the attempts of this process tell it; written down when it is news."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from holdfast.domain.delivery import OUR_OWN, Signs, signs_of
from holdfast.storage import deliveries
from holdfast.storage.database import Connection
from holdfast.storage.deliveries import Result

NOTED_AGAIN_SECONDS = 5.0


class EndpointHealth:
    def __init__(self) -> None:
        self._heard: dict[UUID, Signs] = {}
        self._noted: dict[UUID, tuple[Signs, float]] = {}
        self._has_recovered = False

    def hear(self, results: Sequence[Result], *, somebody_recovered: bool) -> None:
        self._add(
            (result.endpoint_id, signs_of(result.cause, result.is_gone))
            for result in results
            if result.cause not in OUR_OWN
        )
        self._has_recovered |= somebody_recovered

    async def note(self, connection: Connection) -> None:
        """What cannot be noted, because somebody has an endpoint locked or the database is away, is noted
        with the next."""
        heard, has_recovered = self._heard, self._has_recovered
        self._heard, self._has_recovered = {}, False
        if not has_recovered and not self._are_news(heard):
            return
        try:
            await deliveries.note_health(connection, heard)
        except BaseException:
            later, self._heard = self._heard, heard
            self._add(later.items())
            self._has_recovered |= has_recovered
            raise
        now = time.monotonic()
        self._noted.update((endpoint_id, (one, now)) for endpoint_id, one in heard.items())

    def _add(self, later: Iterable[tuple[UUID, Signs]]) -> None:
        for endpoint_id, one in later:
            before = self._heard.get(endpoint_id)
            self._heard[endpoint_id] = before.followed_by(one) if before else one

    def _are_news(self, signs: Mapping[UUID, Signs]) -> bool:
        """What was noted a moment ago need not be noted again, each time that a dead endpoint is tried."""
        earliest = time.monotonic() - NOTED_AGAIN_SECONDS
        for endpoint_id, one in signs.items():
            before, noted_at = self._noted.get(endpoint_id, (None, 0.0))
            if one.cause is not None and (one != before or noted_at < earliest):
                return True
        return False
