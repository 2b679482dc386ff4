"""Finds what may never happen: the history of a run is held against the final state of its database.

``python -m tests.chaos.checker FOLDER`` checks a run again that has left its files in the folder.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from holdfast.domain.delivery import Schedule
from holdfast.web.pagination import NUMBER_CURSOR
from tests.chaos.calls_checker import (
    Call,
    Trails,
    acknowledgement_faults,
    calls_of,
    first_call,
    overlap_faults,
    repeat_faults,
)
from tests.chaos.deliveries_checker import attempt_faults, deliveries_of, fan_out_and_end_faults
from tests.chaos.history import Record, read
from tests.chaos.state import FinalState
from tests.support.history_checker import faults_of, replayed
from tests.support.unit_history import Row

CONNECTIONS_PER_INSTALLATION = 24
"""Of the web process 8, of the worker 16."""
CONNECTIONS = 2 * CONNECTIONS_PER_INSTALLATION
MOST_KEPT = 20
"""Of the faults of one invariant."""


@dataclass(frozen=True)
class Limits:
    connections: int
    waiting: int = 2000
    """Writes in the queue of one process."""
    rss_factor: float = 2.0
    warm_up_seconds: float = 10.0
    """So long after it was first seen, the memory of a process is measured for the first time."""
    settle_seconds: float = 60.0
    first_gap_seconds: float = 0.2
    attempts: int = 8
    tolerance_seconds: float = 0.1


def check(history: Iterable[Record], state: FinalState, limits: Limits) -> dict[str, list[str]]:
    """Return the faults by invariant, at most ``MOST_KEPT`` of each; none for what can have happened."""
    records = list(history)
    calls = calls_of(records)
    trails = Trails(state, calls)
    stepped_at = [one["at"] for one in records if one["kind"] == "clock"]
    schedule = Schedule(limits.first_gap_seconds, limits.attempts)
    deliveries = deliveries_of(records, state, schedule, limits.tolerance_seconds, stepped_at)
    found = {
        "I1": acknowledgement_faults(records, calls, trails),
        "I2": fan_out_and_end_faults(deliveries, state),
        "I3": overlap_faults(trails, state.bookings, with_times=not stepped_at),
        "I4": attempt_faults(deliveries),
        "I5": repeat_faults(calls, trails),
        "I6": feed_faults(records, state),
        "I7": status_faults(records),
        "I8": settled_faults(records, limits),
        "I9": sample_faults(records, limits),
        "I10": identity_faults(records, calls, state),
    }
    return {name: list(islice(faults, MOST_KEPT)) for name, faults in found.items()}


# I6: the feed


def feed_faults(records: Sequence[Record], state: FinalState) -> Iterator[str]:
    positions = sorted(event["position"] or 0 for event in state.events)
    if positions != list(range(1, len(positions) + 1)):
        at = next(n for n, position in enumerate(positions, 1) if n != position)
        yield f"of {len(positions)} events, the one at place {at} has the position {positions[at - 1]}"
    if (last := state.sequences["last_position"]) != len(positions):
        yield f"{len(positions)} events have a position, but the last one is {last}"
    readers: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record["kind"] == "page":
            readers[record["reader"]].append(record)
    if len(readers) < 2:
        yield f"{len(readers)} readers read the feed, so no two can be compared"
    seen = {event_id for pages in readers.values() for page in pages for event_id in page["events"]}
    # All readers have the same key, which lets them see these projects.
    projects = {event["project_id"] for event in state.events if event["id"] in seen}
    ids = {event["position"]: event["id"] for event in state.events if event["project_id"] in projects}
    for reader, pages in readers.items():
        yield from _reader_faults(reader, pages, ids)


def _reader_faults(reader: str, pages: Sequence[Record], ids: Mapping[int, str]) -> Iterator[str]:
    """Each page has exactly the events between its two cursors, and the last one those up to the end."""
    stored, upto = set(ids.values()), 0
    cursor = pages[0]["after"]
    if cursor is not None:
        yield f"{reader} began after {cursor}, not with the start"
    for page in pages:
        if page["after"] != cursor:
            yield f"{reader} read on after {page['after']}, where the page before had led to {cursor}"
        cursor = page["next"]
        after, upto = (0 if one is None else NUMBER_CURSOR.decode(one) for one in (page["after"], cursor))
        expected = [ids[position] for position in range(after + 1, upto + 1) if position in ids]
        if page["events"] != expected:
            difference = _difference(page["events"], expected, stored)
            yield f"{reader}, positions {after + 1} to {upto}: {difference}"
    if upto < (last := max(ids, default=0)):
        yield f"{reader} read up to position {upto}, and not to the end at {last}"


def _difference(events: Sequence[str], expected: Sequence[str], stored: set[str]) -> str:
    if unknown := [one for one in events if one not in stored]:
        return f"the event {unknown[0]} is not stored"
    if missing := [one for one in expected if one not in events]:
        return f"the event {missing[0]} was not on its page"
    if strange := [one for one in events if one not in expected]:
        return f"the event {strange[0]} belongs to another page"
    return "the events came twice or in another order"


# I7, I8, I9: statuses, recovery and resources


def status_faults(records: Iterable[Record]) -> Iterator[str]:
    for record in records:
        status = record.get("status") if record["kind"] in ("ok", "fail", "unknown") else None
        if status is not None and status >= 500 and status != 503:
            yield f"{record['call']} was answered with {status}: {record.get('why', '')}"
        answer = record.get("answer") if record["kind"] == "ok" else None
        for result in answer.get("results", []) if isinstance(answer, dict) else []:
            status = result.get("problem", {}).get("status", 0)
            if status >= 500 and status != 503:
                yield f"{record['call']} was answered with {status} for {result['code']}"


def settled_faults(records: Iterable[Record], limits: Limits) -> Iterator[str]:
    ends = [record for record in records if record["kind"] == "settled"]
    if not ends:
        yield "nobody waited until all was settled"
    for end in ends:
        if end["seconds"] is None or end["seconds"] > limits.settle_seconds:
            yield f"not settled {limits.settle_seconds:g} s after the last fault: {end.get('left', '')}"


def sample_faults(records: Iterable[Record], limits: Limits) -> Iterator[str]:
    memory, samples = _Memory(limits), [record for record in records if record["kind"] == "sample"]
    if not samples:
        yield "nobody looked at connections, memory and queues"
    for record in samples:
        if record["connections"] > limits.connections:
            yield f"{record['connections']} connections at {record['at']}, where {limits.connections} may be"
        if record["waiting"] > limits.waiting:
            yield f"{record['waiting']} writes waited in a queue at {record['at']}"
        yield from memory.take(record["at"], record["rss"])


@dataclass
class _Memory:
    limits: Limits
    first_seen_at: dict[str, float] = field(default_factory=dict)
    first: dict[str, int] = field(default_factory=dict)
    """Of each process, after its warm-up."""
    reported: set[str] = field(default_factory=set)

    def take(self, at: float, rss: Mapping[str, int]) -> Iterator[str]:
        for process, size in rss.items():
            if at - self.first_seen_at.setdefault(process, at) < self.limits.warm_up_seconds:
                continue
            first = self.first.setdefault(process, size)
            if size > first * self.limits.rss_factor and process not in self.reported:
                self.reported.add(process)
                yield f"{process} had {first >> 20} MiB and has {size >> 20} MiB at {at}"


# I10: identities


class Identities:
    """What was first told of each id."""

    def __init__(self) -> None:
        self._told: dict[tuple[object, ...], tuple[str, str]] = {}

    def differs(self, *key: object, content: object, where: str) -> Iterator[str]:
        text = content if isinstance(content, str) else json.dumps(content, sort_keys=True, default=str)
        told, first = self._told.setdefault(key, (text, where))
        if told != text:
            yield f"{' '.join(map(str, key))} is {_short(text)} in {where}, and was {_short(told)} in {first}"


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def identity_faults(records: Sequence[Record], calls: Mapping[str, Call], state: FinalState) -> Iterator[str]:
    identities = Identities()
    yield from _stored_identities(identities, state)
    for call in calls.values():
        if call.kind == "ok" and isinstance(call.answer, dict):
            yield from _answered_identities(identities, call, calls)
    for record in records:
        if record["kind"] == "arrival":
            where = f"the arrival at {record['receiver']} at {record['at']}"
            yield from identities.differs("delivery", record["delivery"], content=record["body"], where=where)
        elif record["kind"] == "page" and record["events"]:
            last, where = record["events"][-1], f"a page of {record['reader']}"
            yield from identities.differs(
                "the event before cursor", record["next"], content=last, where=where
            )


def _stored_identities(identities: Identities, state: FinalState) -> Iterator[str]:
    codes = {unit["id"]: unit["code"] for unit in state.units}
    for name, key, rows in _unique_keys(state):
        counts: dict[object, int] = defaultdict(int)
        for row in rows:
            counts[key(row)] += 1
        for value, count in counts.items():
            if count > 1 and value is not None:
                yield f"{name} {value} is stored {count} times"
    for booking in state.bookings:
        content = codes.get(booking["unit_id"], "")
        yield from identities.differs("booking", booking["reference"], content=content, where="the database")
    for delivery in state.deliveries:
        where, document = "the database", json.loads(delivery["body"])
        yield from identities.differs("delivery", delivery["id"], content=delivery["body"], where=where)
        content = {name: value for name, value in document.items() if name != "id"}
        change = (delivery["unit_id"], delivery["unit_version"])
        yield from identities.differs(
            "event of", *change, content=content, where=f"delivery {delivery['id']}"
        )
    given_out = max((booking["number"] for booking in state.bookings), default=0)
    if given_out > state.sequences["booking_number"]:
        yield f"the booking number {given_out} is stored, and will be given out again"


def _unique_keys(state: FinalState) -> list[tuple[str, Callable[[Row], object], list[Row]]]:
    return [
        ("booking reference", lambda row: row["reference"], state.bookings),
        ("booking number", lambda row: row["number"], state.bookings),
        ("event", lambda row: row["id"], state.events),
        ("position", lambda row: row["position"], state.events),
        ("event of unit and version", lambda row: (row["unit_id"], row["unit_version"]), state.events),
        ("delivery", lambda row: row["id"], state.deliveries),
        ("ref", lambda row: row["ref"], state.units),
        ("unit code", lambda row: (row["slug"], row["code"]), state.units),
    ]


def _answered_identities(identities: Identities, call: Call, calls: Mapping[str, Call]) -> Iterator[str]:
    answer, where = call.answer, call.id
    if call.target == "unit" and call.etag is not None:
        # A reader may see a hold as expired while an earlier cancellation is not committed yet. Both are the
        # same version but for its time; what is written is held against the trail.
        content = {name: value for name, value in answer.items() if name != "updatedAt"}
        yield from identities.differs("unit", answer["id"], call.etag, content=content, where=where)
        if call.is_mutating:
            key = ("unit", answer["id"], "version", call.version)
            yield from identities.differs(*key, content=call.etag, where=where)
    reference = answer.get("reference")
    if reference is None:
        return
    code = answer["unit"]["code"] if call.target == "hold" else answer.get("unitCode")
    if code is not None:
        yield from identities.differs("booking", reference, content=code, where=where)
    if call.target == "hold":
        holder = {"token": answer["token"], "asked by": first_call(call, calls)}
        yield from identities.differs("hold", reference, content=holder, where=where)
    if "terms" in answer:
        yield from identities.differs("terms of", reference, content=answer["terms"], where=where)


# Backups


def backup_faults(
    restored: FinalState, final: FinalState, records: Iterable[Record], begun_at: float
) -> list[str]:
    """A backup has what was acknowledged before it began, and of each unit the beginning of its trail."""
    later = {history.unit["id"]: [row["id"] for row in history.entries] for history in final.histories()}
    found = []
    for history in restored.histories():
        replay = replayed(history)
        history.unit["version"] = replay.version  # A restore advances all counters.
        found += [f"in the backup, {fault}" for fault in faults_of(history, replay)]
        was = [row["id"] for row in history.entries]
        if was != later.get(history.unit["id"], [])[: len(was)]:
            found.append(f"the trail of {history.unit['code']} in the backup is not the beginning of its own")
    kept, calls = {entry["id"] for entry in restored.audit_entries}, calls_of(records)
    for stored in (one for unit in Trails(final, calls).units for one in unit.stored):
        call = calls.get(stored.entry["request_id"] or "")
        is_before = call is not None and call.acknowledges(stored.unit.code) and call.ended_at < begun_at
        if is_before and stored.entry["id"] not in kept:
            found.append(f"{call} was acknowledged before the backup, which does not have it")
    return found[:MOST_KEPT]


# Checking a run again


def table(found: Mapping[str, Sequence[str]]) -> str:
    lines: list[Any] = []
    for name, faults in found.items():
        lines += [f"{name:4} {'holds' if not faults else f'{len(faults)} faults'}"]
        lines += [f"     {fault}" for fault in faults]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stdout.write(__doc__ or "")
        return 2
    folder = Path(arguments[0])
    state = FinalState.load(folder / "state.json")
    found = check(read(folder / "history.jsonl"), state, Limits(connections=CONNECTIONS))
    sys.stdout.write(f"{table(found)}\n")
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
