"""The past deliveries of the demo: to a receiver that failed now and then, and was once away for a while."""

from datetime import datetime, timedelta
from http import HTTPStatus
from random import Random

from holdfast.domain import delivery
from holdfast.domain.endpoint import IssuedSecret
from holdfast.domain.endpoint_url import parse_endpoint_url
from holdfast.storage import deliveries, log_partitions, past
from holdfast.storage.database import Connection
from holdfast.webhooks.attempt import build_request
from holdfast.webhooks.causes import explain_status

REGISTERED_DAYS = 30
"""So many days ago. Each day of the log takes time to create."""
_SCHEDULE = delivery.Schedule()
_FAILURES = {12: 1, 31: 8, 40: 1, 41: 3, 42: 2, 43: 1, 44: 1, 63: 1, 70: 8, 78: 2}
"""How many attempts of a delivery failed, by its place in the queue; none of the others."""


async def deliver_past(connection: Connection, receiver: IssuedSecret, registered_at: datetime) -> None:
    """Attempt all that is queued since a time for the receiver, until each delivery ended."""
    random = Random(2026)  # noqa: S311 - the same for each start
    # A day more: it may be after midnight by now.
    await log_partitions.create_upcoming(connection, REGISTERED_DAYS + 1)
    await past.backdate_endpoint(connection, receiver.endpoint, registered_at)
    claims = await past.claim_all(connection, receiver.endpoint)
    failures = {claim.delivery_id: _FAILURES.get(place, 0) for place, claim in enumerate(claims)}
    while claims:
        records = [_attempt(claim, failures[claim.delivery_id], receiver, random) for claim in claims]
        await deliveries.record_attempts(connection, records)
        claims = await past.claim_all(connection, receiver.endpoint)


def _attempt(
    claim: delivery.ClaimedDelivery, failures: int, receiver: IssuedSecret, random: Random
) -> delivery.AttemptRecord:
    succeeds = claim.progress.tried >= failures
    status = HTTPStatus.OK if succeeds else HTTPStatus.SERVICE_UNAVAILABLE
    waited = _SCHEDULE.first_gap_seconds * (2**claim.progress.tried - 1)
    at = claim.claimed_at + timedelta(seconds=waited, milliseconds=random.randint(5, 60))
    sent = (claim.event, claim.delivery_id, claim.body.encode(), receiver.text, int(at.timestamp()))
    result = delivery.AttemptResult(
        duration_ms=round(random.lognormvariate(3, 0.6), 2),
        request_headers=build_request(parse_endpoint_url(claim.url), *sent)[1],
        secret_id=receiver.endpoint.secret_id,
        status_code=status,
        response_body=status.phrase.encode(),
        cause=None if succeeds else explain_status(status),
    )
    decision = delivery.decide_after_attempt(claim.progress, succeeds, _SCHEDULE)
    return delivery.AttemptRecord(claim, at, result, decision)
