"""The past deliveries of the demo: to a receiver that failed now and then, and was once away for a while."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from http import HTTPStatus
from random import Random

from holdfast.domain import delivery
from holdfast.domain.endpoint import IssuedSecret
from holdfast.domain.endpoint_url import parse_endpoint_url
from holdfast.storage import deliveries, past
from holdfast.storage.database import Connection
from holdfast.webhooks.attempt import Post, Secret, build_request
from holdfast.webhooks.causes import explain_status

_SCHEDULE = delivery.Schedule()
_RARELY = 0.03
_AWAY_DAYS, _AWAY_EVENTS = 37, 6
_FAILED_DAYS = (20, 2)
"""So many days ago the receiver did not accept one event, however often it was sent."""


async def deliver_past(connection: Connection, receiver: IssuedSecret, now: datetime) -> None:
    """Attempt all that this transaction has queued for the receiver, until each delivery has ended."""
    random = Random(2026)  # noqa: S311 - the same for each start
    claims = await past.claim_all(connection, receiver.endpoint)
    order = [claim.delivery_id for claim in claims]
    failures = dict(zip(order, _failures([claim.claimed_at for claim in claims], now, random), strict=True))
    while claims:
        records = [_attempt(claim, failures[claim.delivery_id], receiver, random) for claim in claims]
        await deliveries.record_attempts(connection, records)
        claims = await past.claim_all(connection, receiver.endpoint)


def _failures(times: Sequence[datetime], now: datetime, random: Random) -> list[int]:
    """Return how many attempts of each event failed."""
    failures = [int(random.random() < _RARELY) for _ in times]

    def first_since(days: int) -> int:
        return sum(at < now - timedelta(days=days) for at in times)

    away = first_since(_AWAY_DAYS)
    failures[away : away + _AWAY_EVENTS] = [random.randint(1, 3) for _ in range(_AWAY_EVENTS)]
    for days in _FAILED_DAYS:
        failures[first_since(days)] = _SCHEDULE.attempts
    return failures


def _attempt(
    claim: delivery.ClaimedDelivery, failures: int, receiver: IssuedSecret, random: Random
) -> delivery.AttemptRecord:
    tried, url, body = claim.progress.tried, parse_endpoint_url(claim.url), claim.body.encode()
    status = HTTPStatus.OK if tried >= failures else HTTPStatus.SERVICE_UNAVAILABLE
    waited = _SCHEDULE.first_gap_seconds * (2**tried - 1)
    at = claim.claimed_at + timedelta(seconds=waited, milliseconds=random.randint(5, 60))

    async def read_secret() -> Secret:
        return Secret(receiver.endpoint.secret_id, receiver.text)

    post = Post(claim.url, claim.event, claim.delivery_id, body, read_secret, at.timestamp)
    answer, took_ms = status.phrase.encode(), round(random.lognormvariate(3, 0.6), 2)
    result = delivery.AttemptResult(
        took_ms + 0.6,
        delivery.Timings(connect_ms=0.4, first_byte_ms=took_ms),
        build_request(url, post, receiver.text, int(at.timestamp()))[1],
        receiver.endpoint.secret_id,
        None if url.address is None else str(url.address),
        status,
        (("content-type", "text/plain; charset=utf-8"), ("content-length", str(len(answer)))),
        answer,
        cause=explain_status(status) if tried < failures else None,
    )
    decision = delivery.decide_after_attempt(claim.progress, tried >= failures, _SCHEDULE)
    return delivery.AttemptRecord(claim, at, result, decision)
