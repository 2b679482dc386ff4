"""The history of a unit, held against what was promised. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_TAKEN = frozenset({"held", "reserved", "sold"})

Entry = Mapping[str, Any]


def faults_of(code: str, entries: Sequence[Entry]) -> list[str]:
    """``entries``: as the back office tells them, put in order of time; the first ones may be missing."""
    faults, holder, status = [], None, None
    for entry in entries:
        after = (entry["after"] or {}).get("status")
        if after is None:
            continue
        before = (entry["before"] or {}).get("status")
        if status is not None and before != status:
            faults.append(f"{code} was {status}, and its next change began with {before}.")
        who = entry["bookingReference"]
        if after in _TAKEN and holder not in (None, who):
            faults.append(f"{code} was {after} for {who} while {holder} had it.")
        holder, status = (who if after in _TAKEN else None), after
    return faults


def openings(entries: Sequence[Entry]) -> dict[str, int]:
    """How often each booking has got the unit from its being free."""
    found: dict[str, int] = {}
    for entry in entries:
        if (entry["after"] or {}).get("status") == "held" and entry["bookingReference"]:
            found[entry["bookingReference"]] = found.get(entry["bookingReference"], 0) + 1
    return found
