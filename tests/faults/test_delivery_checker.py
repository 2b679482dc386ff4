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
    times = {"started_at": of.at - 0.1, "ended_at": of.at + 0.6}
    signed = {"signature": of.signature, "secret_id": secret_id}
    answered = {"status_code": of.status, "cause": cause}
    return {"delivery_id": of.delivery_id, "number": number, **times, **signed, **answered}


def lost(number: int, of: Arrival) -> dict[str, Any]:
    nothing = {"signature": None, "secret_id": None, "status_code": None, "cause": OUTCOME_UNKNOWN}
    return told(number, of, "", None) | nothing | {"ended_at": of.at + PACE.lease_seconds}


def delivery(name: str, version: int, status: str, attempts: int) -> dict[str, Any]:
    of_unit = {"endpoint_id": "endpoint", "unit_id": "unit", "unit_version": version}
    sent = {"id": name, "event": "unit.available", "body": body(name)}
    return {**of_unit, **sent, "status": status, "attempts": attempts}


def event(version: int) -> dict[str, Any]:
    of_unit = {"unit_id": "unit", "unit_version": version, "type": "unit.available"}
    return {"id": f"event-{version}", **of_unit, "endpoint_ids": ["endpoint"]}


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
        lag_seconds=0.5,
    )


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


def send_late_in_the_lease(history: DeliveryHistory) -> None:
    history.arrivals[2] = arrival("two", PACE.lease_seconds + 0.5, None)


PLANTED: list[tuple[str, Callable[[DeliveryHistory], object]]] = [
    ("0 deliveries instead of 1", forget_delivery),
    ("2 deliveries instead of 1", lambda found: found.deliveries.append(found.deliveries[0])),
    ("1 deliveries instead of 0", lambda found: found.events.pop()),
    (
        "was acknowledged, but has no event",
        lambda found: setattr(found, "acknowledged", found.acknowledged | {("unit", 5)}),
    ),
    ("is pending", lambda found: found.deliveries[0].update(status="pending")),
    ("is cancelled", lambda found: found.deliveries[2].update(status="cancelled")),
    ("is still in flight", lambda found: found.in_flight.append({"delivery_id": "one"})),
    (
        "delivered, though of [1, 2, 3] [] succeeded",
        lambda found: found.deliveries[2].update(status="delivered"),
    ),
    ("failed, though of [1, 2] [2] succeeded", lambda found: found.deliveries[0].update(status="failed")),
    ("but not by None", lambda found: found.arrivals.pop(1)),
    ("but the log has [2]", lambda found: found.attempts.pop(0)),
    ("is in no log", lambda found: found.attempts.pop(2)),
    (
        "but the log has [1, 1, 2]",
        lambda found: found.attempts.append(told(1, found.arrivals[2], "secret-1", None)),
    ),
    ("is in no log", lambda found: found.arrivals.append(arrival("two", 25, 200))),
    ("the receiver got it 4 times", send_a_fourth_time),
    ("attempt 2 came", lambda found: move(found, 1, -2.0)),
    ("attempt 3 came", lambda found: move(found, 6, -2.0)),
    ("attempt 2 came", lambda found: move(found, 3, -2.0)),
    ("is not signed with secret-1", lambda found: sign_wrongly(found, 0, "hfs_other")),
    ("is not signed with secret-2", lambda found: sign_wrongly(found, 1, "hfs_old")),
    ("is not signed with any secret", lambda found: sign_wrongly(found, 2, "hfs_other")),
    ("has a time of another moment", sign_for_another_time),
    ("the receiver got other bytes", send_other_bytes),
    ("the receiver was told unit.sold", lambda found: setattr(found.arrivals[1], "event", "unit.sold")),
    ("the body is that of two", lambda found: found.deliveries[0].update(body=body("two"))),
    ("first attempts overlap, or are in the wrong order", lambda found: move(found, 0, 2.0)),
    ("first attempts overlap, or are in the wrong order", lambda found: move(found, 0, 0.8)),
    ("first attempts overlap, or are in the wrong order", lambda found: move(found, 4, -3.0)),
    ("an ordered endpoint did not wait", lambda found: setattr(found, "ordered", {"endpoint"})),
    ("requests of no delivery", lambda found: found.arrivals.append(arrival("four", 0, 200))),
    ("too late in its lease", send_late_in_the_lease),
]


def test_a_sound_history_has_no_faults() -> None:
    assert faults_of(sound(), PACE) == []


@pytest.mark.parametrize(("sentence", "plant"), PLANTED)
def test_a_planted_fault_is_found(sentence: str, plant: Callable[[DeliveryHistory], object]) -> None:
    history = sound()
    plant(history)
    found = faults_of(history, PACE)
    assert any(sentence in one for one in found), found


@pytest.mark.parametrize("place", [1, 3], ids=["a retry", "after a lease"])
def test_what_comes_too_early_is_the_only_fault(place: int) -> None:
    history = sound()
    move(history, place, -2.0)
    (found,) = faults_of(history, PACE)
    assert "too early" in found
