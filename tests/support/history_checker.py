"""Finds what cannot have happened to a unit: its audit trail is replayed, and all else held against it.

The trail tells of every change, one after the other. So it says which events there must be, at which
versions, and how the unit and its bookings must stand in the end.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.domain.booking import CLAIMING
from holdfast.domain.transitions import TRANSITIONS
from tests.support.unit_history import History, Row

CLAIMED_AS = {"open": "held", "signed": "held", "reserved": "reserved", "sold": "sold"}
BOOKING_STEPS: Mapping[str | None, set[str]] = {
    None: {"open", "sold"},
    "open": {"signed", "cancelled", "lapsed"},
    "signed": {"reserved", "cancelled", "lapsed"},
    "reserved": {"sold", "refund-due"},
    "sold": {"cancelled", "refund-due"},
    "lapsed": {"reserved", "refund-due"},
    "cancelled": {"reserved", "refund-due"},
    "refund-due": {"refunded"},
    "refunded": set(),
}
BOOKING_ALONE = ("sign", "mark-refunded", "reissue-link")
# By their names in the trail; media are left out, for the trail keeps them as they were sent.
_NAMES = """
    status archived holdExpiresAt reservedUntil type areaSqm priceSar vatIncluded vatRate depositPercent
    bedrooms bathrooms deliveryYear floor description
"""
UNIT_COLUMNS = {name: re.sub("([A-Z])", r"_\1", name).lower() for name in _NAMES.split()}
NEW_UNIT: Row = dict.fromkeys(UNIT_COLUMNS) | {"archived": False}

Step = tuple[str, str, str]
"""(action, status before, status after)"""
_LEGAL = {(row.action, row.source, row.target): row.event for row in TRANSITIONS}


def replayed(history: History) -> Replay:
    replay = Replay()
    for entry in history.entries:
        replay.take(entry)
    return replay


def faults_of(history: History, replay: Replay | None = None) -> list[str]:
    """Empty for a history that can have happened. ``replay``: of its trail, if that was replayed already."""
    replay, events = replay or replayed(history), history.events
    found = [*replay.faults, *_final_state(history, replay)]
    if [_told(event) for event in events] != replay.told:
        found.append(f"events {[_told(event) for event in events]}, but the trail tells {replay.told}")
    found += _untimely(events, replay)
    return [f"{history.unit['code']}: {fault}" for fault in found]


def feed_faults(histories: Sequence[History], feed: Sequence[Row]) -> list[str]:
    """The feed has every event once, each unit's in the order of its versions."""
    by_unit: dict[str, list[str]] = {history.unit["id"]: [] for history in histories}
    for item in feed:
        by_unit.setdefault(item["data"]["unit"]["id"], []).append(item["id"])
    return [
        f"{history.unit['code']}: the feed has {by_unit[history.unit['id']]}"
        for history in histories
        if by_unit[history.unit["id"]] != [event["id"] for event in history.events]
    ]


class Replay:
    """The unit and its bookings, as the trail tells of them."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.unit: Row | None = None
        self.version = 0
        self.changed_at = ""
        self.bookings: dict[str, str] = {}
        self.told: list[tuple[Any, ...]] = []
        """The events that there must be."""
        self.times: dict[int, str] = {}
        """Of versions; the first of two steps in one change has no time of its own in the trail."""
        self.states: dict[int, Row] = {}
        """The unit in each of its versions, but for the first of two steps in one change."""
        self.versions: list[int] = []
        """Of the unit after each entry."""

    def take(self, entry: Row) -> None:
        action, before, after = entry["action"], dict(entry["before"] or {}), dict(entry["after"])
        booking_before, booking_after = before.pop("bookingStatus", None), after.pop("bookingStatus", None)
        if action == "create":
            self._create(entry, after)
        elif self.unit is None:
            self.faults.append(f"{action} before the unit was created")
        elif after:
            self._change(entry, before, after)
        if booking_after is not None:
            self._change_booking(entry["booking_reference"], booking_before, booking_after)
        self._look_at_the_claim(action)
        self.versions.append(self.version)
        if self.unit is not None:
            self.states.setdefault(self.version, {**self.unit, "updatedAt": self.changed_at})

    def _create(self, entry: Row, after: Row) -> None:
        if self.unit is not None:
            self.faults.append("created twice")
        self.unit, self.version, self.changed_at = {**NEW_UNIT, **after}, 1, entry["at"]

    def _change(self, entry: Row, before: Row, after: Row) -> None:
        assert self.unit is not None
        action = entry["action"]
        if action in BOOKING_ALONE:
            self.faults.append(f"{action} changed the unit: {after}")
        found = {name: self.unit[name] for name in before if name in self.unit}
        if found != {name: before[name] for name in found}:
            self.faults.append(f"{action} found {before}, but the one before it had left {found}")
        if entry["at"] <= self.changed_at:
            self.faults.append(f"{action} at {entry['at']}, not later than {self.changed_at}")
        self.changed_at = entry["at"]
        self._go(list(_steps(action, self.unit["status"], after)), entry)
        self.unit |= {name: value for name, value in after.items() if name in self.unit}

    def _go(self, steps: list[Step], entry: Row) -> None:
        self.version += max(1, len(steps))
        self.times[self.version] = entry["at"]
        for behind, step in zip(range(len(steps) - 1, -1, -1), steps, strict=True):
            if step not in _LEGAL:
                self.faults.append(f"no such transition: {step}")
                continue
            event = _LEGAL[step]
            if event is not None:
                named = entry["booking_reference"] if event in ("unit.reserved", "unit.sold") else None
                self.told.append((self.version - behind, str(event), step[1], step[2], named))

    def _change_booking(self, reference: str, before: str | None, after: str) -> None:
        known = self.bookings.get(reference)
        if known != before:
            self.faults.append(f"booking {reference} was {known}, not {before}")
        if after not in BOOKING_STEPS[known]:
            self.faults.append(f"booking {reference} went from {known} to {after}")
        self.bookings[reference] = after

    def _look_at_the_claim(self, action: str) -> None:
        claims = [status for status in self.bookings.values() if status in CLAIMING]
        if len(claims) > 1:
            self.faults.append(f"{len(claims)} bookings claim the unit after {action}")
        elif self.unit is not None:
            status = self.unit["status"]
            expected = CLAIMED_AS[claims[0]] if claims else None
            if expected != (status if status in CLAIMED_AS.values() else None):
                self.faults.append(f"{status} with claims {claims} after {action}")


def _steps(action: str, status: str, after: Row) -> Iterator[Step]:
    target = after.get("status", status)
    if action == "confirm-deposit" and status == "available":
        # A deposit that came late: the unit is held and reserved in one change.
        yield ("open", "available", "held")
        yield (action, "held", target)
    elif action != "change" or target != status:
        yield (action, status, target)


def _told(event: Row) -> tuple[Any, ...]:
    names = ("unit_version", "type", "previous_status", "status", "booking_reference")
    return tuple(event[name] for name in names)


def _untimely(events: Sequence[Row], replay: Replay) -> Iterator[str]:
    for event in events:
        at = replay.times.get(event["unit_version"], event["created_at"])
        if event["created_at"] != at:
            yield f"{event['type']} at {event['created_at']}, but the change was at {at}"
    for one, other in itertools.pairwise(events):
        if one["created_at"] >= other["created_at"]:
            yield f"{other['type']} at {other['created_at']}, not later than {one['created_at']}"


def _final_state(history: History, replay: Replay) -> Iterator[str]:
    unit = history.unit
    if replay.unit is None:
        yield "the trail tells of no creation"
        return
    for name, column in UNIT_COLUMNS.items():
        if unit[column] != replay.unit[name]:
            yield f"{column} is {unit[column]}, but the trail ends with {replay.unit[name]}"
    if (unit["version"], unit["updated_at"]) != (replay.version, replay.changed_at):
        yield (
            f"version {unit['version']} of {unit['updated_at']}, "
            f"but the trail tells of {replay.version}, the last of {replay.changed_at}"
        )
    yield from _final_bookings(history, replay)


def _final_bookings(history: History, replay: Replay) -> Iterator[str]:
    stored = {booking["reference"]: booking["status"] for booking in history.bookings}
    if stored != replay.bookings:
        yield f"bookings are {stored}, but the trail ends with {replay.bookings}"
    for booking in history.bookings:
        if booking["deposit_confirmed_at"] and booking["status"] in ("open", "signed", "lapsed", "cancelled"):
            yield f"booking {booking['reference']} is {booking['status']}, though its deposit was confirmed"
        claimed_as = CLAIMED_AS.get(booking["status"])
        for status, column in (("held", "hold_expires_at"), ("reserved", "reserved_until")):
            if claimed_as == status and history.unit[column] != booking[column]:
                yield f"{column} is {history.unit[column]}, that of its booking {booking[column]}"
