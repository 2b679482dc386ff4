"""Who waits for whom: the events of one unit, on their way to one endpoint."""

from __future__ import annotations

_EARLIER = """
    select {what} from pending_delivery as earlier
    where earlier.endpoint_id = {delivery}.endpoint_id and earlier.unit_id = {delivery}.unit_id
        and earlier.unit_version < {delivery}.unit_version and earlier.holds_back
        and earlier.attempts {attempts}
"""


def must_wait(delivery: str, ordered: str) -> str:
    """A condition: an earlier event of the unit must have its first attempt first, or, on an ordered
    endpoint, its end. The two are looked up apart, each in an index of its own: there may be many retries."""
    return f"""(
        exists ({_earlier(delivery, "= 0")}) or {ordered} and exists ({_earlier(delivery, "> 0")})
    )"""


def latest_retry(delivery: str, ordered: str) -> str:
    """When the last of the retries that it waits for is due; null if it waits for none."""
    return f"case when {ordered} then ({_earlier(delivery, '> 0', 'max(earlier.due_at)')}) end"


def _earlier(delivery: str, attempts: str, what: str = "") -> str:
    return _EARLIER.format(delivery=delivery, attempts=attempts, what=what)
