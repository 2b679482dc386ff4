"""The life of a delivery, step by step: committed, each attempt, its end or what comes next."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from holdfast.domain.delivery import Delivery, DeliveryStatus
from holdfast.operations.deliveries import Attempt


class Step(NamedTuple):
    kind: str
    """``committed``, ``attempt``, how it ended, or what it waits for: ``next``, ``due`` or ``paused``."""
    at: datetime | None
    gap_seconds: float | None = None
    """Since the step before ended."""
    attempt: Attempt | None = None

    @property
    def tone(self) -> str:
        if self.attempt is not None:
            return "bad" if self.attempt.cause else "good"
        return {"delivered": "good", "failed": "bad", "next": "busy", "due": "busy"}.get(self.kind, "")


def timeline(
    delivery: Delivery, attempts: Sequence[Attempt], now: datetime, *, is_paused: bool
) -> list[Step]:
    """``attempts``: the latest of them; what lies between the commit and those is left open."""
    steps = [Step("committed", delivery.created_at)]
    ended_at = delivery.created_at if attempts and attempts[0].number == 1 else None
    for attempt in attempts:
        gap = None if ended_at is None else max((attempt.started_at - ended_at).total_seconds(), 0.0)
        steps.append(Step("attempt", attempt.started_at, gap, attempt))
        ended_at = attempt.ended_at
    return [*steps, _last(delivery, now, is_paused)]


def _last(delivery: Delivery, now: datetime, is_paused: bool) -> Step:
    if delivery.status is not DeliveryStatus.PENDING:
        return Step(delivery.status.value, delivery.ended_at)
    if is_paused:
        return Step("paused", None)
    due_at = delivery.next_attempt_at
    return Step("next", due_at) if due_at is not None and due_at > now else Step("due", due_at)
