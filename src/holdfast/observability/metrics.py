"""Metrics for Prometheus, added up over all processes of one ``serve``."""

from __future__ import annotations

import os
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

_REQUESTS = Counter("holdfast_http_requests_total", "HTTP requests answered.", ["method", "route", "status"])
_SECONDS = Histogram(
    "holdfast_http_request_seconds",
    "Time from the request to its answer.",
    ["method", "route"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
_WRITES = Counter("holdfast_write_batches_total", "Batches of the write path.")
_COMMANDS = Counter("holdfast_write_commands_total", "Commands that these batches carried.")
_NUMBERED = Counter("holdfast_events_numbered_total", "Events that were given their place in the feed.")

CONTENT_TYPE = CONTENT_TYPE_LATEST

_KNOWN_METHODS = frozenset({"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS"})


def note_request(method: str, route: str, status: int, seconds: float) -> None:
    if method not in _KNOWN_METHODS:
        method = "other"
    count, times = _series(method, route, status)
    count.inc()
    times.observe(seconds)


@cache
def _series(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    """Finding a series by its labels costs more than counting; there are few, so each is found once."""
    return _REQUESTS.labels(method, route, status), _SECONDS.labels(method, route)


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
