"""How much of the machine others used meanwhile: their share is taken from every contestant."""

import os

import psutil

NOTICEABLE_PERCENT = 5.0


def busy_seconds() -> float:
    """What all processors of the machine have worked, and what its host kept from it."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)


def own_seconds() -> float:
    """The harness and the load generators that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def foreign_percent(busy: float, ours: float, seconds: float) -> float:
    available = seconds * (psutil.cpu_count() or 1)
    return max(0.0, 100 * (busy - ours) / available)
