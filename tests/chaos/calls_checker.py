"""Holds what clients were answered against the audit trail: I1, I3, I5."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from holdfast.domain.booking import CLAIMING
from tests.chaos.history import Record
from tests.chaos.state import FinalState
from tests.support.history_checker import Replay, faults_of, replayed
from tests.support.unit_history import History, Row

BATCH_SECONDS = 0.05
"""Changes of one batch are a millisecond apart in the trail, though they were made at the same moment."""
_PATTERNS = {
    "unit": r"/v1/integration/projects/(?P<slug>[^/]+)/units/(?P<code>[^/]+)",
    "bulk": r"/v1/integration/projects/(?P<slug>[^/]+)/units",
    "hold": r"/v1/storefront/projects/(?P<slug>[^/]+)/units/(?P<code>[^/]+)/hold",
    "booking": r"/v1/storefront/bookings/(?P<reference>[^/]+)(/(?P<action>sign))?",
    "act on booking": r"/v1/backoffice/bookings/(?P<reference>[^/]+)/(?P<action>[^/]+)",
    "act on unit": r"/v1/backoffice/projects/(?P<slug>[^/]+)/units/(?P<code>[^/]+)/(?P<action>[^/]+)",
    "pay": r"/v1/payments/callback",
}
_PATHS = {target: re.compile(pattern) for target, pattern in _PATTERNS.items()}
_ETAG = re.compile(r'"?(\d+)([a-z])-\d+"?')
# What may be acknowledged once more without a change: the status that the booking must have had then.
_REPEATABLE = {
    "sign": {"signed"},
    "cancel": {"cancelled"},
    "confirm-deposit": {"reserved", "refund-due"},
    "mark-refunded": {"refunded"},
}
_NOT_COMPARED = ("archived", "reservedUntil")
"""Fields of the trail that the document of a unit does not have."""


@dataclass
class Call:
    """A request, and what became of it."""

    id: str
    method: str
    path: str
    body: Any
    invoked_at: float
    repeats: str | None
    kind: str = "unknown"
    """As in the history: "ok", "fail" or "unknown"."""
    ended_at: float = float("inf")
    status: int | None = None
    answer: Any = None
    etag: str | None = None
    target: str = "other"
    parts: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def is_mutating(self) -> bool:
        return self.method not in ("GET", "HEAD", "OPTIONS")

    @property
    def version(self) -> int | None:
        """Of the unit that was answered."""
        found = _ETAG.fullmatch(self.etag or "")
        return int(found[1]) if found else None

    def acknowledges(self, code: str) -> bool:
        """Whether it tells that the change of this unit is stored. Of many, each has a result of its own."""
        results = self.answer.get("results", []) if isinstance(self.answer, dict) else []
        is_refused = any(one["code"] == code and one["outcome"] == "refused" for one in results)
        return self.kind == "ok" and not is_refused

    @property
    def action(self) -> str:
        if self.target == "pay":
            return "confirm-deposit"
        return self.parts.get("action") or {"booking": "cancel"}.get(self.target, self.target)

    @property
    def reference(self) -> str | None:
        """Of the booking that it is about."""
        if self.target in ("pay", "hold"):
            source = self.body if self.target == "pay" else self.answer
            return source.get("reference") if isinstance(source, dict) else None
        return self.parts.get("reference")

    def __str__(self) -> str:
        return f"{self.id} ({self.method} {self.path}: {self.status})"


def calls_of(records: Iterable[Record]) -> dict[str, Call]:
    calls: dict[str, Call] = {}
    for record in records:
        if record["kind"] == "invoke":
            call = Call(
                record["call"], record["method"], record["path"].partition("?")[0], record.get("body"),
                record["at"], record.get("repeats"),
            )  # fmt: skip
            for target, pattern in _PATHS.items():
                if found := pattern.fullmatch(call.path):
                    call.target, call.parts = target, found.groupdict()
            calls[call.id] = call
        elif record["kind"] in ("ok", "fail", "unknown") and record["call"] in calls:
            call = calls[record["call"]]
            call.kind, call.ended_at, call.status = record["kind"], record["at"], record.get("status")
            call.answer, call.etag = record.get("answer"), record.get("etag")
    return calls


class Stored(NamedTuple):
    """An entry of the trail, and the unit that it is about."""

    entry: Row
    unit: Unit
    version: int
    """Of the unit after it."""


class Unit:
    """A unit with its trail, and when its versions were asked for and acknowledged."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.code: str = history.unit["code"]
        self.replay: Replay = replayed(history)
        self.stored = [
            Stored(entry, self, version)
            for entry, version in zip(history.entries, self.replay.versions, strict=True)
        ]
        self._acknowledged: list[tuple[float, int]] = []
        self._invoked: dict[int, float] = {}

    def note_versions(self, calls: Mapping[str, Call]) -> None:
        acknowledged = []
        for stored in self.stored:
            call = calls.get(stored.entry["request_id"] or "")
            # Actions on a booking alone follow at the version that another entry made.
            self._invoked.setdefault(stored.version, 0.0 if call is None else call.invoked_at)
            if call is not None and call.acknowledges(self.code):
                acknowledged.append((call.ended_at, stored.version))
        acknowledged.sort()
        times = [at for at, _ in acknowledged]
        self._acknowledged = list(
            zip(times, accumulate((version for _, version in acknowledged), max), strict=True)
        )

    def time_faults(self, call: Call) -> Iterator[str]:
        """The answered version may be neither older nor newer than what there was during the call."""
        version = call.version
        if version is None:
            return
        before = bisect_left(self._acknowledged, (call.invoked_at, 0))
        newest = self._acknowledged[before - 1][1] if before else 0
        if version < newest:
            yield f"{call} answered version {version} of {self.code} after version {newest} was acknowledged"
        # What readers see of an expired hold is written later, or never if the clock was set back.
        if call.is_mutating and self._invoked.get(version, 0.0) > call.ended_at:
            yield f"{call} answered version {version} of {self.code} before anybody asked for it"

    def versions_during(self, call: Call) -> list[int]:
        """Return those that the unit may have had between the request and its answer."""
        before = bisect_left(self._acknowledged, (call.invoked_at, 0))
        newest = self._acknowledged[before - 1][1] if before else 0
        return [
            version
            for version in self.replay.states
            if version >= newest and self._invoked.get(version, 0.0) <= call.ended_at
        ]

    def claims(self) -> Iterator[tuple[str, Stored, Stored | None]]:
        """Each claim of a booking on the unit, with its first and its last entry."""
        live: dict[str, Stored] = {}
        for stored in self.stored:
            status, reference = stored.entry["after"].get("bookingStatus"), stored.entry["booking_reference"]
            if status in CLAIMING:
                live.setdefault(reference, stored)
            elif status is not None and reference in live:
                yield reference, live.pop(reference), stored
        for reference, begun in live.items():
            yield reference, begun, None


class Trails:
    """All that was stored, by call, by booking and by unit."""

    def __init__(self, state: FinalState, calls: Mapping[str, Call]) -> None:
        self.units = [Unit(history) for history in state.histories()]
        self.by_id = {unit.history.unit["id"]: unit for unit in self.units}
        self.by_code = {(unit.history.unit["slug"], unit.code): unit for unit in self.units}
        self.by_call: dict[str, list[Stored]] = defaultdict(list)
        self.by_reference: dict[str, list[Stored]] = defaultdict(list)
        for unit in self.units:
            unit.note_versions(calls)
            for stored in unit.stored:
                if stored.entry["actor_kind"] != "clock":
                    self.by_call[stored.entry["request_id"] or ""].append(stored)
                if stored.entry["booking_reference"] is not None:
                    self.by_reference[stored.entry["booking_reference"]].append(stored)

    def unit_of(self, call: Call) -> Unit | None:
        return self.by_code.get((call.parts.get("slug") or "", call.parts.get("code") or ""))


# I1: what was acknowledged


def acknowledgement_faults(
    records: Iterable[Record], calls: Mapping[str, Call], trails: Trails
) -> Iterator[str]:
    for unit in trails.units:
        yield from faults_of(unit.history, unit.replay)
    for call in calls.values():
        if call.is_mutating:
            yield from _call_faults(call, calls, trails)
        elif call.kind == "ok" and call.target == "unit" and (read := trails.unit_of(call)) is not None:
            yield from read.time_faults(call)
    for request_id, entries in trails.by_call.items():
        for stored in entries:
            is_ours = stored.entry["actor_kind"] == "command" or stored.entry["action"] == "create"
            if request_id not in calls and not is_ours:
                what = f"{stored.entry['action']} at version {stored.version}"
                yield f"{stored.unit.code}: {what} is stored for {request_id!r}, which is no call"
    for record in records:
        if record["kind"] == "stale":
            yield f"{record['call']} read an older state of {record['unit']} than was acknowledged"


def _call_faults(call: Call, calls: Mapping[str, Call], trails: Trails) -> Iterator[str]:
    own = trails.by_call.get(call.id, [])
    for code, count in Counter(stored.unit.code for stored in own).items():
        if count > 1:
            yield f"{call} is stored {count} times for {code}"
    if call.kind == "fail":
        for stored in own:
            yield f"{call} was refused, but {stored.entry['action']} of {stored.unit.code} is stored"
    if call.target != "bulk" and len({stored.unit.code for stored in own}) > 1:
        yield f"{call} is stored for {len(own)} units"
    if call.kind == "ok":
        yield from _ok_faults(call, own, calls, trails)


def _ok_faults(call: Call, own: list[Stored], calls: Mapping[str, Call], trails: Trails) -> Iterator[str]:
    if call.target == "bulk":
        yield from _bulk_faults(call, own, trails)
    elif call.target == "unit":
        yield from _unit_faults(call, own, trails)
    elif call.target == "hold":
        yield from _hold_faults(call, own, trails)
    elif call.target != "other":
        yield from _action_faults(call, own, calls, trails)


def _bulk_faults(call: Call, own: list[Stored], trails: Trails) -> Iterator[str]:
    stored = {one.unit.code: one.version for one in own}
    sent = {unit["code"]: unit for unit in call.body} if isinstance(call.body, list) else {}
    results = call.answer.get("results", []) if isinstance(call.answer, dict) else []
    for result in results:
        code, outcome = result["code"], result["outcome"]
        if outcome in ("created", "replaced") and code not in stored:
            yield f"{call}: {code} was {outcome}, but nothing is stored"
        # What is refused because the database went away may be stored all the same.
        is_unknown = outcome == "refused" and result.get("problem", {}).get("status") == 503
        if outcome in ("unchanged", "refused") and not is_unknown and code in stored:
            yield f"{call}: {code} was {outcome}, but a change is stored"
        unit = trails.by_code.get((call.parts.get("slug") or "", code))
        if outcome == "refused" or code not in sent:
            continue
        if unit is None:
            yield f"{call}: {code} was {outcome}, but there is no such unit"
            continue
        possible = {stored[code]} if code in stored else unit.versions_during(call)
        if not any(not _differences(sent[code], unit.replay.states[version]) for version in possible):
            yield f"{call}: {code} was {outcome}, but has other values than were sent"


def _unit_faults(call: Call, own: list[Stored], trails: Trails) -> Iterator[str]:
    unit = trails.unit_of(call)
    if unit is None:
        yield f"{call} was acknowledged, but there is no such unit"
        return
    version = call.version
    if not own and call.status == 201:
        yield f"{call} was acknowledged, but nothing is stored"
    if version is None:
        return
    if own and own[0].version != version:
        yield f"{call} answered version {version}, but is stored as version {own[0].version}"
    state = unit.replay.states.get(version)
    if state is None:
        yield f"{call} answered version {version}, which {unit.code} never had"
        return
    for source, said in ((call.answer, "answered"), (call.body, "was acknowledged")):
        for name in _differences(source if isinstance(source, dict) else {}, state):
            yield f"{call} {said} with {name} {source[name]!r}, but version {version} has {state[name]!r}"
    if not own:
        yield from unit.time_faults(call)


def _differences(said: Mapping[str, Any], state: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that are otherwise in this state of a unit."""
    return [
        name
        for name, value in said.items()
        if name in state and name not in _NOT_COMPARED and not _is_same(value, state[name])
    ]


def _is_same(one: Any, other: Any) -> bool:
    numbers = (int, float, Decimal)
    if isinstance(one, numbers) and isinstance(other, numbers):
        return Decimal(str(one)) == Decimal(str(other)) if not isinstance(one, bool) else one is other
    return bool(one == other)


def _hold_faults(call: Call, own: list[Stored], trails: Trails) -> Iterator[str]:
    reference, unit = call.reference, trails.unit_of(call)
    if own and own[0].entry["booking_reference"] != reference:
        yield f"{call} answered {reference}, but is stored as {own[0].entry['booking_reference']}"
    opened = [
        stored for stored in trails.by_reference.get(reference or "", []) if stored.entry["action"] == "open"
    ]
    if unit is None or not any(stored.unit is unit for stored in opened):
        yield f"{call} answered {reference}, but no such hold is stored"


def _action_faults(call: Call, own: list[Stored], calls: Mapping[str, Call], trails: Trails) -> Iterator[str]:
    """Actions on units and bookings: either a change of its own, or one before that it repeats."""
    reference = call.reference
    if own:
        if reference is not None and own[0].entry["booking_reference"] != reference:
            yield f"{call} is stored for the booking {own[0].entry['booking_reference']}"
        return
    reached = _REPEATABLE.get(call.action, set()) if reference is not None else set()
    earlier = [
        stored
        for stored in trails.by_reference.get(reference or "", [])
        if stored.entry["after"].get("bookingStatus") in reached
    ]
    if not earlier:
        yield f"{call} was acknowledged, but nothing is stored"
    asked = [calls.get(stored.entry["request_id"] or "") for stored in earlier]
    if earlier and all(one is not None and one.invoked_at > call.ended_at for one in asked):
        yield f"{call} was acknowledged before anybody had asked for what is stored"


# I3: holds never overlap


def overlap_faults(trails: Trails, bookings: list[Row], *, with_times: bool) -> Iterator[str]:
    """``with_times``: the clock of the database was never set, so its times count too."""
    for unit in trails.units:
        claims = sorted(unit.claims(), key=lambda claim: claim[1].entry["id"])
        for (one, _, ended), (other, begun, _) in pairwise(claims):
            if ended is None or begun.entry["id"] < ended.entry["id"]:
                yield f"{unit.code}: {other} begins at version {begun.version}, while {one} still claims it"
            elif with_times and begun.entry["at"] < ended.entry["at"]:
                yield f"{unit.code}: {other} begins at {begun.entry['at']}, before {one} ends"
    if with_times:
        yield from _booking_overlaps(trails, bookings)


def _booking_overlaps(trails: Trails, bookings: list[Row]) -> Iterator[str]:
    """By the times of the bookings themselves, without those that came back after their end."""
    by_unit: dict[str, list[Row]] = defaultdict(list)
    for booking in bookings:
        entries = trails.by_reference.get(booking["reference"], [])
        ends = [one for one in entries if one.entry["after"].get("bookingStatus") in ("lapsed", "cancelled")]
        if not ends or booking["status"] in ("lapsed", "cancelled"):
            by_unit[booking["unit_id"]].append(booking)
    for unit_id, own in by_unit.items():
        own.sort(key=lambda booking: (booking["created_at"], booking["number"]))
        for one, other in pairwise(own):
            ended_at = one["ended_at"]
            if ended_at is None or _seconds(other["created_at"]) < _seconds(ended_at) - BATCH_SECONDS:
                code = trails.by_id[unit_id].code
                yield f"{code}: {other['reference']} was made before {one['reference']} ended ({ended_at})"


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


# I5: repeated requests


def repeat_faults(calls: Mapping[str, Call], trails: Trails) -> Iterator[str]:
    groups: dict[str, list[Call]] = defaultdict(list)
    for call in calls.values():
        if call.is_mutating:
            groups[first_call(call, calls)].append(call)
    for first, group in groups.items():
        if len(group) > 1:
            yield from _group_faults(first, group, trails)


def first_call(call: Call, calls: Mapping[str, Call]) -> str:
    """Return the call that this one repeats, or itself."""
    while call.repeats is not None and call.repeats in calls:
        call = calls[call.repeats]
    return call.repeats or call.id


def _group_faults(first: str, group: list[Call], trails: Trails) -> Iterator[str]:
    stored = [one for call in group for one in trails.by_call.get(call.id, [])]
    for unit in {one.unit.code: one.unit for one in stored}.values():
        own = sorted((one for one in stored if one.unit is unit), key=lambda one: one.entry["id"])
        for one, other in pairwise(own):
            if group[0].target not in ("unit", "bulk", "act on unit") or not _was_undone(one, other):
                versions = f"{one.version} and {other.version}"
                yield f"{first} was sent {len(group)} times and stored as versions {versions} of {unit.code}"
    if group[0].target == "hold":
        references = {call.reference for call in group if call.kind == "ok"}
        if len(references) > 1:
            yield f"{first} was answered with the bookings {sorted(map(str, references))}"


def _was_undone(one: Stored, other: Stored) -> bool:
    """Whether somebody changed the same fields in between: then the second one is a change of its own."""
    names = set(other.entry["after"])
    return any(
        names & set(between.entry["after"])
        for between in one.unit.stored
        if one.entry["id"] < between.entry["id"] < other.entry["id"]
    )
