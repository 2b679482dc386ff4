"""Metrics for Prometheus, added up over all processes of one ``serve``."""

from __future__ import annotations

import asyncio
import os
from bisect import bisect_left
from collections import Counter as Counting
from functools import cache

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Histogram,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_REQUESTS = Counter("holdfast_http_requests_total", "HTTP requests answered.", ["method", "route", "status"])
_SECONDS = Histogram(
    "holdfast_http_request_seconds",
    "Time from the request to its answer.",
    ["method", "route"],
    buckets=_BOUNDS,
)
_WRITES = Counter("holdfast_write_batches_total", "Batches of the write path.")
_COMMANDS = Counter("holdfast_write_commands_total", "Commands that these batches carried.")
_NUMBERED = Counter("holdfast_events_numbered_total", "Events that were given their place in the feed.")

CONTENT_TYPE = CONTENT_TYPE_LATEST

_KNOWN_METHODS = frozenset({"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"})


class _Answers:
    """The answers of one kind in one turn of the event loop, which are counted together at its end.

    To count one alone takes as long as to parse its request: every figure is a write into a file that
    the processes share.
    """

    def __init__(self, method: str, route: str, status: int) -> None:
        self._count = _REQUESTS.labels(method, route, status)
        self._times = _SECONDS.labels(method, route)
        self._waiting: list[float] = []

    def note(self, seconds: float) -> None:
        self._waiting.append(seconds)
        if len(self._waiting) > 1:
            return
        try:
            asyncio.get_running_loop().call_soon(self._write)
        except RuntimeError:
            self._write()

    def _write(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._count.inc(len(waiting))
        # The library observes one at a time only.
        self._times._sum.inc(sum(waiting))
        for bucket, number in Counting(bisect_left(_BOUNDS, seconds) for seconds in waiting).items():
            self._times._buckets[bucket].inc(number)


def note_request(method: str, route: str, status: int, seconds: float) -> None:
    _answers(method if method in _KNOWN_METHODS else "other", route, status).note(seconds)


@cache
def _answers(method: str, route: str, status: int) -> _Answers:
    """Finding a series by its labels costs more than counting; there are few, so each is found once."""
    return _Answers(method, route, status)


def note_batch(commands: int) -> None:
    _WRITES.inc()
    _COMMANDS.inc(commands)


def note_numbered(events: int) -> None:
    _NUMBERED.inc(events)


def metrics_text() -> bytes:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return generate_latest(REGISTRY)
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return generate_latest(registry)
