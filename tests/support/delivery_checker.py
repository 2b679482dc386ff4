"""Finds what may never happen to deliveries, whatever was killed: the database's log and the receiver's
own journal are held against each other, and both against the events.

It is for the end of a test, when nothing is on its way any more and nothing was sent anew by hand.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from holdfast.domain.delivery import OUTCOME_UNKNOWN
from holdfast.domain.signature import sign
from tests.support.delivery_journal import Arrival
from tests.support.workers import Pace

CLOCK_SECONDS = 0.01
"""Two clocks read one after the other; the database rounds to milliseconds."""

Row = dict[str, Any]
UnitVersion = tuple[str, int]


@dataclass
class DeliveryHistory:
    events: list[Row]
    """id, unit_id, unit_version, type, endpoint_ids"""
    deliveries: list[Row]
    """Pending and ended ones: id, endpoint_id, unit_id, unit_version, event, body, status, attempts"""
    attempts: list[Row]
    """delivery_id, number, started_at, ended_at, signature, secret_id, status_code, cause"""
    in_flight: list[Row]
    arrivals: list[Arrival]
    secrets: Mapping[str, str]
    """By their ids, old ones too."""
    ordered: frozenset[str]
    """Endpoints that hold back a unit's later events."""
    acknowledged: frozenset[UnitVersion]
    """Changes that their writer was told of."""
    lag_seconds: float
    """How much later than it came the receiver may have noted a request."""

    def attempts_of(self) -> dict[str, list[Row]]:
        """Of each delivery, in their order."""
        found: dict[str, list[Row]] = defaultdict(list)
        for attempt in sorted(self.attempts, key=lambda row: int(row["number"])):
            found[attempt["delivery_id"]].append(attempt)
        return found


class Matched(NamedTuple):
    """An attempt of the log, and the request that the receiver got of it, if it did."""

    attempt: Row
    arrival: Arrival | None


def faults_of(history: DeliveryHistory, pace: Pace) -> list[str]:
    """Empty for what can have happened."""
    found = [*fan_out_faults(history), *end_faults(history)]
    arrivals: dict[str, list[Arrival]] = defaultdict(list)
    for arrival in history.arrivals:
        arrivals[arrival.delivery_id].append(arrival)
    attempts = history.attempts_of()
    matched: dict[str, list[Matched]] = {}
    for delivery in history.deliveries:
        own = arrivals.pop(delivery["id"], [])
        pairs, unknown = _match(attempts.get(delivery["id"], []), own, history.lag_seconds)
        matched[delivery["id"]] = pairs
        faults = [f"{arrival} is in no log" for arrival in unknown]
        faults += [*_log_faults(delivery, pairs, pace), *sameness_faults(delivery, own)]
        faults += [*_gap_faults(pairs, pace, history.lag_seconds)]
        faults += [*_signature_faults(history, pairs, unknown, pace)]
        if len(own) > pace.attempts:
            faults.append(f"the receiver got it {len(own)} times")
        found += [f"{delivery['unit_id']} {delivery['unit_version']}: {fault}" for fault in faults]
    found += [f"the receiver got {len(rest)} requests of no delivery {one}" for one, rest in arrivals.items()]
    return [*found, *_order_faults(history, matched, pace)]


def fan_out_faults(history: DeliveryHistory) -> Iterator[str]:
    told = {(event["unit_id"], event["unit_version"]) for event in history.events}
    for change in history.acknowledged - told:
        yield f"{change} was acknowledged, but has no event"
    wanted = Counter(
        (endpoint_id, event["unit_id"], event["unit_version"], event["type"])
        for event in history.events
        for endpoint_id in event["endpoint_ids"]
    )
    there = Counter(
        (row["endpoint_id"], row["unit_id"], row["unit_version"], row["event"]) for row in history.deliveries
    )
    for key in wanted | there:
        if there[key] != wanted[key]:
            yield f"{key}: {there[key]} deliveries instead of {wanted[key]}"


def end_faults(history: DeliveryHistory) -> Iterator[str]:
    for delivery in history.deliveries:
        if delivery["status"] not in ("delivered", "failed"):
            yield f"delivery {delivery['id']} is {delivery['status']}"
    for claim in history.in_flight:
        yield f"delivery {claim['delivery_id']} is still in flight"


def _match(
    attempts: list[Row], arrivals: list[Arrival], lag_seconds: float
) -> tuple[list[Matched], list[Arrival]]:
    """By signature where the log has one; what was lost with its worker, by time."""
    left = sorted(arrivals, key=lambda arrival: arrival.at)
    found: dict[int, Arrival] = {}
    for is_told in (True, False):
        for attempt in attempts:
            if (attempt["signature"] is not None) is is_told:
                arrival = next((one for one in left if _belongs(one, attempt, lag_seconds)), None)
                if arrival is not None:
                    found[attempt["number"]] = arrival
                    left.remove(arrival)
    return [Matched(attempt, found.get(attempt["number"])) for attempt in attempts], left


def _belongs(arrival: Arrival, attempt: Row, lag_seconds: float) -> bool:
    is_timely = attempt["started_at"] - CLOCK_SECONDS <= arrival.at <= attempt["ended_at"] + lag_seconds
    return is_timely and attempt["signature"] in (None, arrival.signature)


def _log_faults(delivery: Row, pairs: list[Matched], pace: Pace) -> Iterator[str]:
    for attempt, arrival in pairs:
        if attempt["status_code"] is not None and (
            arrival is None or arrival.status != attempt["status_code"]
        ):
            yield f"attempt {attempt['number']} was answered {attempt['status_code']}, but not by {arrival}"
    yield from outcome_faults(delivery, [pair.attempt for pair in pairs], pace.attempts)


def outcome_faults(delivery: Row, attempts: list[Row], most: int) -> Iterator[str]:
    """``attempts``: of this delivery, by their numbers; it fails after ``most`` of them."""
    numbers = [attempt["number"] for attempt in attempts]
    if numbers != list(range(1, delivery["attempts"] + 1)):
        yield f"{delivery['attempts']} attempts, but the log has {numbers}"
    succeeded = [attempt["number"] for attempt in attempts if attempt["cause"] is None]
    if delivery["status"] == "delivered" and succeeded != numbers[-1:]:
        yield f"delivered, though of {numbers} {succeeded} succeeded"
    if delivery["status"] == "failed" and (succeeded or len(numbers) != most):
        yield f"failed, though of {numbers} {succeeded} succeeded"


def sameness_faults(delivery: Row, arrivals: list[Arrival]) -> Iterator[str]:
    document = json.loads(delivery["body"])
    if (document["id"], document["type"]) != (delivery["id"], delivery["event"]):
        yield f"the body is that of {document['id']}, {document['type']}"
    for arrival in arrivals:
        if arrival.body != delivery["body"].encode():
            yield f"the receiver got other bytes: {arrival.body!r}"
        if arrival.event != delivery["event"]:
            yield f"the receiver was told {arrival.event}"


def _gap_faults(pairs: list[Matched], pace: Pace, lag_seconds: float) -> Iterator[str]:
    for attempt, arrival in pairs:
        if attempt["cause"] == OUTCOME_UNKNOWN and arrival is not None:
            # Later its answer could have come after the lease, while the next attempt is on its way.
            latest = attempt["started_at"] + pace.lease_seconds - pace.timeout_seconds
            if arrival.at > latest + lag_seconds:
                late = arrival.at - latest
                yield f"attempt {attempt['number']} was sent {late:.3f} s too late in its lease"
    for earlier, later in itertools.pairwise(pairs):
        if later.arrival is None:
            continue
        earliest = _earliest_next(earlier, pace)
        if later.arrival.at < earliest - CLOCK_SECONDS:
            early = earliest - later.arrival.at
            yield f"attempt {later.attempt['number']} came {early:.3f} s too early"


def _earliest_next(pair: Matched, pace: Pace) -> float:
    attempt, arrival = pair
    if attempt["cause"] == OUTCOME_UNKNOWN:
        return float(attempt["started_at"]) + pace.lease_seconds
    # An attempt ends for its worker, too: on a busy machine the receiver may notice what it did only later.
    ended_at = float(attempt["ended_at"])
    answered_at = None if arrival is None else arrival.answered_at
    return min(answered_at or ended_at, ended_at) + pace.gap_after(attempt["number"])


def _signature_faults(
    history: DeliveryHistory, pairs: list[Matched], unknown: list[Arrival], pace: Pace
) -> Iterator[str]:
    secrets, longest = history.secrets, pace.timeout_seconds + 1 + history.lag_seconds
    for attempt, arrival in [*pairs, *((None, arrival) for arrival in unknown)]:
        if arrival is None:
            continue
        secret_id = None if attempt is None else attempt["secret_id"]
        candidates = list(secrets.values()) if secret_id is None else [secrets.get(secret_id, "")]
        if not any(signature(secret, arrival) == arrival.signature for secret in candidates):
            yield f"{arrival} is not signed with {secret_id or 'any secret'}"
        if not -1 <= arrival.at - int(arrival.timestamp) <= longest:
            yield f"{arrival} has a time of another moment"


def signature(secret: str, arrival: Arrival) -> str:
    return sign(secret, int(arrival.timestamp), arrival.body)


def _order_faults(
    history: DeliveryHistory, matched: Mapping[str, list[Matched]], pace: Pace
) -> Iterator[str]:
    lanes: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for delivery in sorted(history.deliveries, key=lambda row: int(row["unit_version"])):
        lanes[delivery["endpoint_id"], delivery["unit_id"]].append(delivery)
    for (endpoint_id, unit_id), own in lanes.items():
        for earlier, later in itertools.pairwise(own):
            pairs, following = matched[earlier["id"]], matched[later["id"]]
            # The receiver may have got nothing of the first attempt; the log knows of it all the same.
            first = following[0].arrival if following else None
            if not pairs or first is None:
                continue
            versions, at = f"{unit_id}: {later['unit_version']} and {earlier['unit_version']}", first.at
            if at < _over_at(pairs[0], pace) - CLOCK_SECONDS:
                yield f"{versions}: first attempts overlap, or are in the wrong order"
            last = max((one.arrival.at for one in pairs if one.arrival), default=0.0)
            if endpoint_id in history.ordered and at < last - history.lag_seconds:
                yield f"{versions}: an ordered endpoint did not wait"


def _over_at(pair: Matched, pace: Pace) -> float:
    """When the receiver, or the lease, was through with the attempt."""
    attempt, arrival = pair
    if attempt["cause"] == OUTCOME_UNKNOWN:
        return float(attempt["started_at"]) + pace.lease_seconds
    if arrival is None or arrival.answered_at is None:
        return float(attempt["ended_at"])
    return min(arrival.answered_at, float(attempt["ended_at"]))
