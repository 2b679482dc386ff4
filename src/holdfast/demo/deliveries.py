"""The past deliveries of the demo: to a receiver that failed now and then, and was once away for a while."""

from datetime import datetime, timedelta
from http import HTTPStatus
from random import Random

from holdfast.demo.history import early
from holdfast.domain import delivery
from holdfast.domain.endpoint import IssuedSecret
from holdfast.domain.endpoint_url import parse_endpoint_url
from holdfast.storage import deliveries, log_partitions, past
from holdfast.storage.database import Connection
from holdfast.webhooks.attempt import build_request
from holdfast.webhooks.causes import explain_status

_REGISTERED_DAYS = 30
"""So many days ago. Each day of the log takes time to create."""
_SCHEDULE = delivery.Schedule()
_FAILURES = {12: 1, 31: 8, 40: 1, 41: 3, 42: 2, 43: 1, 44: 1, 63: 1, 78: 8}
"""How many attempts of a delivery failed, by its place in the queue; none of the others."""


async def deliver_past(connection: Connection, receiver: IssuedSecret, now: datetime) -> None:
    """Attempt all that has been queued for the receiver since its registration, until each delivery ended."""
    random = Random(2026)  # noqa: S311 - the same for each start
    # A day more: it may be after midnight by now.
    await log_partitions.create_upcoming(connection, _REGISTERED_DAYS + 1)
    await past.backdate(connection, [receiver.endpoint.id], early(now, _REGISTERED_DAYS))
    claims = await past.claim_all(connection, receiver.endpoint)
    failures = {claim.delivery_id: _FAILURES.get(place, 0) for place, claim in enumerate(claims)}
    while claims:
        records = [_attempt(claim, failures[claim.delivery_id], receiver, random) for claim in claims]
        await deliveries.record_attempts(connection, records)
        claims = await past.claim_all(connection, receiver.endpoint)


def _attempt(
    claim: delivery.ClaimedDelivery, failures: int, receiver: IssuedSecret, random: Random
) -> delivery.AttemptRecord:
    tried, url, body = claim.progress.tried, parse_endpoint_url(claim.url), claim.body.encode()
    succeeds = tried >= failures
    status = HTTPStatus.OK if succeeds else HTTPStatus.SERVICE_UNAVAILABLE
    waited = _SCHEDULE.first_gap_seconds * (2**tried - 1)
    at = claim.claimed_at + timedelta(seconds=waited, milliseconds=random.randint(5, 60))
    sent = (claim.event, claim.delivery_id, body, receiver.text, int(at.timestamp()))
    result = delivery.AttemptResult(
        duration_ms=round(random.lognormvariate(3, 0.6), 2),
        request_headers=build_request(url, *sent)[1],
        secret_id=receiver.endpoint.secret_id,
        status_code=status,
        response_headers=(("content-type", "text/plain; charset=utf-8"),),
        response_body=status.phrase.encode(),
        cause=None if succeeds else explain_status(status),
    )
    return delivery.AttemptRecord(
        claim, at, result, delivery.decide_after_attempt(claim.progress, succeeds, _SCHEDULE)
    )
