"""Requests are counted together, each in its own bucket."""

import asyncio
from typing import Any

from prometheus_client import REGISTRY

from holdfast.observability import metrics

LABELS = {"method": "GET", "route": "/counted"}


def figure(name: str, **labels: Any) -> float:
    return REGISTRY.get_sample_value(f"holdfast_http_request{name}", LABELS | labels) or 0.0


async def test_a_time_on_a_bound_belongs_below_it() -> None:
    for seconds in (0.001, 0.0011, 0.0025, 31.0):
        metrics.count_request("GET", "/counted", 200, seconds)
    metrics.flush_counts()
    assert figure("s_total", status="200") == figure("_seconds_count") == 4
    assert figure("_seconds_sum") == 31.0046
    assert [figure("_seconds_bucket", le=bound) for bound in ("0.001", "0.0025", "30.0", "+Inf")] == [
        1, 3, 3, 4,
    ]  # fmt: skip


async def test_requests_are_counted_soon_without_being_asked_for() -> None:
    before = figure("s_total", status="204")
    metrics.count_request("GET", "/counted", 204, 0.5)
    await asyncio.sleep(metrics.FLUSH_SECONDS)
    assert figure("s_total", status="204") == before + 1
