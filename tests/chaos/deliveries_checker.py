"""Holds what receivers got against the log and the events: I2, I4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.domain.delivery import INTERNAL_CAUSES, OUTCOME_UNKNOWN, Schedule
from holdfast.domain.event import PING
from tests.chaos.history import CLOCK_STEP_SECONDS, Record
from tests.chaos.state import FinalState
from tests.support.delivery_checker import (
    DeliveryHistory,
    Matched,
    end_faults,
    fan_out_faults,
    outcome_faults,
    sameness_faults,
    signature,
)
from tests.support.delivery_journal import Arrival
from tests.support.unit_history import Row

ELSEWHERE = "elsewhere"
"""The receiver to which others redirect."""
STEP_SECONDS = 3.0
"""How long a session of the database may still have the old time after a step of the clock."""
NOTED_SECONDS = 1.0
"""How much later than it happened a step of the clock may be in the history."""


@dataclass
class Deliveries:
    """Each delivery with its arrivals, and these with the attempts that explain them."""

    history: DeliveryHistory
    schedule: Schedule
    tolerance_seconds: float
    clock_stepped_at: Sequence[float] = ()
    arrivals: dict[str, list[Arrival]] = field(default_factory=lambda: defaultdict(list))
    matched: dict[str, list[Matched]] = field(default_factory=dict)
    extra: list[Arrival] = field(default_factory=list)
    """Arrivals that no recorded attempt explains."""

    def __post_init__(self) -> None:
        for arrival in sorted(self.history.arrivals, key=lambda one: one.at):
            self.arrivals[arrival.delivery_id].append(arrival)
        attempts = self.history.attempts_of()
        for delivery in self.history.deliveries:
            pairs = match(attempts.get(delivery["id"], []), self.arrivals.get(delivery["id"], []))
            self.matched[delivery["id"]] = pairs
            explained = {id(pair.arrival) for pair in pairs}
            rest = [one for one in self.arrivals.get(delivery["id"], []) if id(one) not in explained]
            self.extra += rest[: len(rest) - self._overtaken(pairs, rest)]

    def _overtaken(self, pairs: Sequence[Matched], arrivals: Sequence[Arrival]) -> int:
        """How many were signed by a worker that was given up, and came after what was signed later."""
        given_up: int = sum(
            pair.arrival is None and pair.attempt["cause"] == OUTCOME_UNKNOWN for pair in pairs
        )
        newest = max((pair.arrival.timestamp for pair in pairs if pair.arrival is not None), default="")
        late = sum(bool(self.clock_stepped_at) or one.timestamp <= newest for one in arrivals)
        return min(given_up, late)


def deliveries_of(
    records: Iterable[Record],
    state: FinalState,
    schedule: Schedule,
    tolerance_seconds: float,
    clock_stepped_at: Sequence[float],
) -> Deliveries:
    arrivals = [arrival_of(one) for one in records if one["kind"] == "arrival" and one["event"] != PING]
    ordered = frozenset(endpoint["id"] for endpoint in state.endpoints if endpoint["ordered"])
    history = DeliveryHistory(
        state.events, state.deliveries, state.attempts, state.in_flight, arrivals, state.secrets, ordered,
        acknowledged=frozenset(), lag_seconds=tolerance_seconds,
    )  # fmt: skip
    return Deliveries(history, schedule, tolerance_seconds, clock_stepped_at)


def arrival_of(record: Record) -> Arrival:
    return Arrival(
        record["at"], record.get("receiver", ""), record["delivery"], record["event"],
        str(record["timestamp"]), record["signature"], record["body"].encode(), record["status"],
        record.get("answered_at"),
    )  # fmt: skip


def match(attempts: Sequence[Row], arrivals: Sequence[Arrival]) -> list[Matched]:
    """Give attempts their arrivals, in the order of both, to as many as possible.

    Times do not count: the clock of the database may have been set.
    """
    if len(attempts) == len(arrivals) == 1 and _explains(attempts[0], arrivals[0]):
        return [Matched(attempts[0], arrivals[0])]
    # best[i][j]: how good the best pairs of the attempts from i on with the arrivals from j on are.
    best = [[0] * (len(arrivals) + 1) for _ in range(len(attempts) + 1)]
    for i in reversed(range(len(attempts))):
        for j in reversed(range(len(arrivals))):
            together = best[i + 1][j + 1] + _likeness(attempts[i], arrivals[j])
            best[i][j] = max(together, best[i + 1][j], best[i][j + 1])
    pairs, j = list[Matched](), 0
    for i, attempt in enumerate(attempts):
        while j < len(arrivals) and best[i][j] == best[i][j + 1]:
            j += 1
        is_taken = best[i][j] > best[i + 1][j]
        pairs.append(Matched(attempt, arrivals[j] if is_taken else None))
        j += is_taken
    return pairs


def _likeness(attempt: Row, arrival: Arrival) -> int:
    """0: the arrival is not of this attempt. One more pair counts for more than one that is more alike."""
    if not _explains(attempt, arrival):
        return 0
    return 1000 if attempt["signature"] is None else 1001


def _explains(attempt: Row, arrival: Arrival) -> bool:
    if attempt["status_code"] is not None and attempt["status_code"] != arrival.status:
        return False
    if attempt["signature"] is None:
        # It was never sent, or nobody knows.
        return attempt["cause"] in INTERNAL_CAUSES
    return bool(attempt["signature"] == arrival.signature)


# I2: every event reaches every endpoint


def fan_out_and_end_faults(found: Deliveries, state: FinalState) -> Iterator[str]:
    yield from fan_out_faults(found.history)
    yield from end_faults(found.history)
    yield from _subscription_faults(state)
    known = {delivery["id"] for delivery in state.deliveries}
    for delivery_id, own in found.arrivals.items():
        if delivery_id not in known:
            yield f"{own[0].path} got {delivery_id} ({own[0].event}), which is no delivery"
    for delivery in state.deliveries:
        where = f"delivery {delivery['id']} (version {delivery['unit_version']} of {delivery['unit_id']})"
        for fault in outcome_faults(
            delivery, [pair.attempt for pair in found.matched[delivery["id"]]], found.schedule.attempts
        ):
            yield f"{where}: {fault}"
        is_received = any(200 <= (one.status or 0) < 300 for one in found.arrivals.get(delivery["id"], []))
        if delivery["status"] == "delivered" and not is_received:
            yield f"{where} is delivered, but no receiver has taken it"


def _subscription_faults(state: FinalState) -> Iterator[str]:
    """All endpoints were there before the first event, and none was changed."""
    for endpoint in state.endpoints:
        for event in state.events:
            is_wanted = event["type"] in endpoint["events"] and (
                endpoint["project_ids"] is None or event["project_id"] in endpoint["project_ids"]
            )
            if is_wanted and endpoint["id"] not in event["endpoint_ids"]:
                yield f"event {event['id']} was not for {endpoint['description'] or endpoint['id']}"


# I4: attempts keep to their number, schedule, bytes and order


def attempt_faults(found: Deliveries) -> Iterator[str]:
    for endpoint_id in sorted({row["endpoint_id"] for row in found.history.deliveries}):
        if endpoint_id not in found.history.secrets:
            yield f"the secret of the endpoint {endpoint_id} is not known, so no signature was checked"
    for delivery in found.history.deliveries:
        pairs, own = found.matched[delivery["id"]], found.arrivals.get(delivery["id"], [])
        faults = [*_series_faults(pairs, found.schedule), *sameness_faults(delivery, own)]
        faults += [*_gap_faults(found, pairs), *_signature_faults(found, delivery, own)]
        for fault in faults:
            yield f"delivery {delivery['id']}: {fault}"
    for arrival in found.history.arrivals:
        if arrival.path == ELSEWHERE:
            yield f"delivery {arrival.delivery_id} followed a redirect"
    # An attempt is committed before it is sent, so that even a worker that is killed leaves none without one.
    for arrival in found.extra:
        yield f"the arrival of {arrival.delivery_id} at {arrival.path} at {arrival.at} is in no log"
    yield from _order_faults(found)


def _series_faults(pairs: Sequence[Matched], schedule: Schedule) -> Iterator[str]:
    in_series = 0
    for attempt, _ in pairs:
        in_series = 1 if attempt["trigger"] == "resend" else in_series + 1
        if in_series == schedule.attempts + 1:
            yield f"a series of more than {schedule.attempts} attempts"


def _gap_faults(found: Deliveries, pairs: Sequence[Matched]) -> Iterator[str]:
    for one, other in pairwise(pairs):
        if other.attempt["trigger"] == "resend":
            continue
        if one.arrival is None or other.arrival is None:
            yield from _unseen_gap_faults(found, one.attempt, other.attempt)
            continue
        number = one.attempt["number"]
        # After a lost attempt the next one follows its lease, which is longer than the first gap.
        is_lost = one.attempt["cause"] == OUTCOME_UNKNOWN
        gap = found.schedule.gap_after(1 if is_lost else number).total_seconds()
        began_at, came_at = one.arrival.at, other.arrival.at
        if not found.clock_stepped_at and one.arrival.answered_at is not None:
            # On a busy machine the receiver may notice only later that it has answered.
            began_at = min(one.arrival.answered_at, float(one.attempt["ended_at"]))
        if came_at - began_at < gap - found.tolerance_seconds and not _has_step(
            found, one.arrival.at, came_at
        ):
            yield f"attempt {number + 1} came {came_at - began_at:.3f} s after the one before, not {gap:g} s"


def _unseen_gap_faults(found: Deliveries, one: Row, other: Row) -> Iterator[str]:
    """By the log alone, where one of the two reached nobody: as if the receiver's name cannot be resolved."""
    if one["cause"] == OUTCOME_UNKNOWN:
        return
    gap = found.schedule.gap_after(one["number"]).total_seconds()
    ended_at, began_at = float(one["ended_at"]), float(other["started_at"])
    passed = began_at - ended_at
    if passed < 0 and found.clock_stepped_at:
        return
    if _has_step_of_log(found, ended_at) or _has_step_of_log(found, began_at):
        return
    if passed < gap - found.tolerance_seconds:
        yield f"attempt {other['number']} began {passed:.3f} s after the one before had ended, not {gap:g} s"


def _has_step(found: Deliveries, since: float, until: float) -> bool:
    return any(since - STEP_SECONDS <= at <= until + NOTED_SECONDS for at in found.clock_stepped_at)


def _has_step_of_log(found: Deliveries, logged_at: float) -> bool:
    """By the clock that was set, so the difference to ours is some steps."""
    return any(
        (logged_at - at + NOTED_SECONDS) % CLOCK_STEP_SECONDS <= STEP_SECONDS + NOTED_SECONDS
        for at in found.clock_stepped_at
    )


def _signature_faults(found: Deliveries, delivery: Row, arrivals: Sequence[Arrival]) -> Iterator[str]:
    secret = found.history.secrets.get(delivery["endpoint_id"])
    for arrival in arrivals if secret is not None else ():
        if not arrival.timestamp.isdigit() or signature(secret or "", arrival) != arrival.signature:
            yield f"the signature of {arrival.timestamp} is wrong"


def _order_faults(found: Deliveries) -> Iterator[str]:
    lanes: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for delivery in sorted(found.history.deliveries, key=lambda row: int(row["unit_version"])):
        lanes[delivery["endpoint_id"], delivery["unit_id"]].append(delivery)
    for (endpoint_id, unit_id), own in lanes.items():
        for earlier, later in pairwise(own):
            versions = f"{unit_id}: version {later['unit_version']} came before {earlier['unit_version']}"
            if endpoint_id in found.history.ordered:
                ended_at, first = _ended_at(found, earlier), found.arrivals.get(later["id"], [])
                if first and ended_at is not None and first[0].at < ended_at - found.tolerance_seconds:
                    yield f"{versions} had ended, at an ordered endpoint"
            one, other = _first_attempt_at(found, earlier), _first_attempt_at(found, later)
            if one is not None and other is not None and other < one - found.tolerance_seconds:
                yield f"{versions}, at the first attempts"


def _ended_at(found: Deliveries, delivery: Row) -> float | None:
    """When the receiver first took it; of one that failed, when it got the last attempt."""
    own = found.arrivals.get(delivery["id"], [])
    taken = [one.at for one in own if 200 <= (one.status or 0) < 300]
    if taken:
        return taken[0]
    got = [pair.arrival.at for pair in found.matched[delivery["id"]] if pair.arrival is not None]
    return got[-1] if got else None


def _first_attempt_at(found: Deliveries, delivery: Row) -> float | None:
    pairs = found.matched[delivery["id"]]
    if not pairs or pairs[0].arrival is None or pairs[0].attempt["signature"] is None:
        return None
    return pairs[0].arrival.at
