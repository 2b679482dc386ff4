"""The checker of deliveries is believed only because it finds what is planted."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.domain.delivery import OUTCOME_UNKNOWN
from tests.support.delivery_checker import DeliveryHistory, faults_of, signature
from tests.support.delivery_journal import Arrival
from tests.support.workers import Pace

PACE = Pace(timeout_seconds=1.0, first_gap_seconds=10.0, lease_seconds=20.0, attempts=3)
START = 1_800_000_000.0
SECRETS = {"secret-1": "hfs_old", "secret-2": "hfs_new"}


def body(delivery_id: str) -> str:
    return json.dumps({"id": delivery_id, "type": "unit.available"})


def arrival(delivery_id: str, at: float, status: int | None, secret: str = "hfs_old") -> Arrival:
    answered_at = None if status is None else START + at + 0.5
    text = body(delivery_id).encode()
    made = Arrival(START + at, "hook", delivery_id, "unit.available", str(int(START + at)), "", text)
    made.status, made.answered_at = status, answered_at
    made.signature = signature(secret, made)
    return made


def told(number: int, of: Arrival, secret_id: str, cause: str | None) -> dict[str, Any]:
    return {
        "delivery_id": of.delivery_id,
        "number": number,
        "started_at": of.at - 0.1,
        "ended_at": of.at + 0.6,
        "signature": of.signature,
        "secret_id": secret_id,
        "status_code": of.status,
        "cause": cause,
    }


def lost(number: int, of: Arrival) -> dict[str, Any]:
    nothing = {"signature": None, "secret_id": None, "status_code": None, "cause": OUTCOME_UNKNOWN}
    return told(number, of, "", None) | nothing | {"ended_at": of.at + PACE.lease_seconds}


def delivery(name: str, version: int, status: str, attempts: int) -> dict[str, Any]:
    return {
        "id": name,
        "endpoint_id": "endpoint",
        "unit_id": "unit",
        "unit_version": version,
        "event": "unit.available",
        "body": body(name),
        "status": status,
        "attempts": attempts,
    }


def event(version: int) -> dict[str, Any]:
    return {
        "id": f"event-{version}",
        "unit_id": "unit",
        "unit_version": version,
        "type": "unit.available",
        "endpoint_ids": ["endpoint"],
    }


def sound() -> DeliveryHistory:
    """One is refused and then taken, one is lost with its worker and then taken, one fails for good."""
    first = [arrival("one", 0, 500), arrival("one", 11, 200, "hfs_new")]
    second = [arrival("two", 1, None), arrival("two", 22, 200, "hfs_new")]
    third = [arrival("three", 23, 500), arrival("three", 34, 500), arrival("three", 55, 500)]
    return DeliveryHistory(
        events=[event(2), event(3), event(4)],
        deliveries=[
            delivery("one", 2, "delivered", 2),
            delivery("two", 3, "delivered", 2),
            delivery("three", 4, "failed", 3),
        ],
        attempts=[
            told(1, first[0], "secret-1", "The receiver answered 500."),
            told(2, first[1], "secret-2", None),
            lost(1, second[0]),
            told(2, second[1], "secret-2", None),
            *(told(number, one, "secret-1", "500") for number, one in enumerate(third, 1)),
        ],
        in_flight=[],
        arrivals=[*first, *second, *third],
        secrets=SECRETS,
        ordered=frozenset(),
        acknowledged=frozenset([("unit", 2), ("unit", 3), ("unit", 4)]),
    )


def test_a_sound_history_has_no_faults() -> None:
    assert faults_of(sound(), PACE) == []


def forget_delivery(history: DeliveryHistory) -> None:
    """As a worker that takes a delivery out before it has sent it."""
    history.deliveries.pop()
    history.arrivals[4:] = []


def move(history: DeliveryHistory, place: int, seconds: float) -> None:
    """The receiver and the log agree that it came at another time."""
    moved, attempt = history.arrivals[place], history.attempts[place]
    moved.at += seconds
    moved.timestamp = str(int(moved.at))
    moved.signature = signature(SECRETS[attempt["secret_id"] or "secret-1"], moved)
    moved.answered_at = moved.answered_at and moved.answered_at + seconds
    attempt.update(started_at=attempt["started_at"] + seconds, ended_at=attempt["ended_at"] + seconds)
    if attempt["signature"]:
        attempt["signature"] = moved.signature


def send_a_fourth_time(history: DeliveryHistory) -> None:
    fourth = arrival("three", 96, 500)
    history.arrivals.append(fourth)
    history.attempts.append(told(4, fourth, "secret-1", "500"))
    history.deliveries[2]["attempts"] = 4


def sign_wrongly(history: DeliveryHistory, place: int, secret: str) -> None:
    forged = history.arrivals[place]
    forged.signature = signature(secret, forged)
    if history.attempts[place]["signature"]:
        history.attempts[place]["signature"] = forged.signature


def sign_for_another_time(history: DeliveryHistory) -> None:
    stale = history.arrivals[1]
    stale.timestamp = str(int(START - 60))
    sign_wrongly(history, 1, "hfs_new")


def send_other_bytes(history: DeliveryHistory) -> None:
    changed = history.arrivals[1]
    changed.body = json.dumps(json.loads(changed.body), indent=1).encode()
    sign_wrongly(history, 1, "hfs_new")


def order(history: DeliveryHistory) -> None:
    history.ordered = frozenset(["endpoint"])


def record_late(history: DeliveryHistory) -> None:
    """A worker that was given up recorded all the same."""
    history.attempts.append(told(1, history.arrivals[2], "secret-1", "No answer"))


def send_after_the_lease(history: DeliveryHistory) -> None:
    """A worker that was given up sends all the same."""
    history.arrivals.append(arrival("two", 25, 200))


def send_late_in_the_lease(history: DeliveryHistory) -> None:
    late = arrival("two", PACE.lease_seconds + 0.5, None)
    history.arrivals[2] = late


PLANTED: dict[str, Callable[[DeliveryHistory], object]] = {
    "an event has no delivery": forget_delivery,
    "a delivery is there twice": lambda history: history.deliveries.append(history.deliveries[0]),
    "a delivery of no event": lambda history: history.events.pop(),
    "an acknowledged change has no event": lambda history: setattr(
        history, "acknowledged", history.acknowledged | {("unit", 5)}
    ),
    "a delivery is still pending": lambda history: history.deliveries[0].update(status="pending"),
    "a delivery was cancelled": lambda history: history.deliveries[2].update(status="cancelled"),
    "a claim was left behind": lambda history: history.in_flight.append({"delivery_id": "one"}),
    "delivered without a success": lambda history: history.deliveries[2].update(status="delivered"),
    "failed before the last attempt": lambda history: history.deliveries[0].update(status="failed"),
    "success that nobody answered": lambda history: history.arrivals.pop(1),
    "an attempt is missing in the log": lambda history: history.attempts.pop(0),
    "a lost attempt is missing in the log": lambda history: history.attempts.pop(2),
    "two records of one attempt": record_late,
    "a request that the log has no attempt for": send_after_the_lease,
    "more attempts than there may be": send_a_fourth_time,
    "a retry comes too early": lambda history: move(history, 1, -2.0),
    "a later retry comes too early": lambda history: move(history, 6, -2.0),
    "sent again before the lease is over": lambda history: move(history, 3, -2.0),
    "signed with a secret that nobody has": lambda history: sign_wrongly(history, 0, "hfs_other"),
    "signed with another secret than the log says": lambda history: sign_wrongly(history, 1, "hfs_old"),
    "a lost attempt is signed with nonsense": lambda history: sign_wrongly(history, 2, "hfs_other"),
    "signed for another time": sign_for_another_time,
    "other bytes in a retry": send_other_bytes,
    "another event in the header": lambda history: setattr(history.arrivals[1], "event", "unit.sold"),
    "another id in the body": lambda history: history.deliveries[0].update(body=body("two")),
    "first attempts in the wrong order": lambda history: move(history, 0, 2.0),
    "first attempts overlap": lambda history: move(history, 0, 0.8),
    "a first attempt does not wait for a lost one": lambda history: move(history, 4, -3.0),
    "an ordered endpoint did not wait": order,
    "requests of no delivery": lambda history: history.arrivals.append(arrival("four", 0, 200)),
    "a lost attempt was sent at the end of its lease": send_late_in_the_lease,
}
FOUND = {
    "an event has no delivery": "0 deliveries instead of 1",
    "a delivery is there twice": "2 deliveries instead of 1",
    "a delivery of no event": "1 deliveries instead of 0",
    "an acknowledged change has no event": "was acknowledged, but has no event",
    "a delivery is still pending": "is pending",
    "a delivery was cancelled": "is cancelled",
    "a claim was left behind": "is still in flight",
    "delivered without a success": "delivered, though of [1, 2, 3] [] succeeded",
    "failed before the last attempt": "failed, though of [1, 2] [2] succeeded",
    "success that nobody answered": "but not by None",
    "an attempt is missing in the log": "but the log has [2]",
    "a lost attempt is missing in the log": "is in no log",
    "two records of one attempt": "but the log has [1, 1, 2]",
    "a request that the log has no attempt for": "is in no log",
    "more attempts than there may be": "the receiver got it 4 times",
    "a retry comes too early": "attempt 2 came",
    "a later retry comes too early": "attempt 3 came",
    "sent again before the lease is over": "attempt 2 came",
    "signed with a secret that nobody has": "is not signed with secret-1",
    "signed with another secret than the log says": "is not signed with secret-2",
    "a lost attempt is signed with nonsense": "is not signed with any secret",
    "signed for another time": "has a time of another moment",
    "other bytes in a retry": "the receiver got other bytes",
    "another event in the header": "the receiver was told unit.sold",
    "another id in the body": "the body is that of two",
    "first attempts in the wrong order": "first attempts overlap, or are in the wrong order",
    "first attempts overlap": "first attempts overlap, or are in the wrong order",
    "a first attempt does not wait for a lost one": "first attempts overlap, or are in the wrong order",
    "an ordered endpoint did not wait": "an ordered endpoint did not wait",
    "requests of no delivery": "requests of no delivery",
    "a lost attempt was sent at the end of its lease": "too late in its lease",
}


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found(fault: str) -> None:
    history = sound()
    PLANTED[fault](history)
    found = faults_of(history, PACE)
    assert any(FOUND[fault] in one for one in found), found


@pytest.mark.parametrize("fault", ["a retry comes too early", "sent again before the lease is over"])
def test_what_comes_too_early_is_the_only_fault(fault: str) -> None:
    history = sound()
    PLANTED[fault](history)
    (found,) = faults_of(history, PACE)
    assert "too early" in found
