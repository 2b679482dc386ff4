"""A board of 2 000 units in a real browser: is it smooth while units change, and how soon are they seen?"""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, pairwise
from statistics import median, quantiles
from threading import Event
from typing import Any, NamedTuple
from urllib.parse import quote

from playwright.sync_api import Page

from benchmarks import database, office
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, holdfast
from benchmarks.office import TOWER, UNITS_OF_A_TOWER
from benchmarks.one_connection import OneConnection
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.wrk import InvalidRun
from tests.support.chromium import chromium

CHANGES_A_SECOND = 10
SMOOTH = 0.9
SEEN_WITHIN_MS = 1000.0
COOKIE = "__Host-holdfast_session"
LEFT_ALONE, CHANGING = "left alone", f"{CHANGES_A_SECOND} units a second change"
ON_SALE = """
    select array_agg(code) from (
        select code from unit join project on project.id = project_id
        where slug = $1 and status = 'available' order by md5(code) limit 500
    ) as chosen
"""
# Scrolls through the building, up and down, and notes when each frame came.
WATCH = """seconds => new Promise(done => {
    const frames = [], tasks = [], until = performance.now() + 1000 * seconds;
    new PerformanceObserver(list => tasks.push(...list.getEntries().map(one => one.duration)))
        .observe({ type: "longtask" });
    let replaced = 0, step = 12;
    const cells = one => [...one.addedNodes].filter(node => node.matches?.("a.u")).length;
    new MutationObserver(list => { replaced += list.reduce((all, one) => all + cells(one), 0); })
        .observe(document.getElementById("board-part"), { childList: true, subtree: true });
    const frame = now => {
        frames.push(now);
        const page = document.scrollingElement;
        if (page.scrollTop + page.clientHeight >= page.scrollHeight - 1) step = -12;
        else if (page.scrollTop <= 0) step = 12;
        scrollBy(0, step);
        if (now < until) requestAnimationFrame(frame); else done({ frames, tasks, replaced });
    };
    requestAnimationFrame(frame);
})"""

# Since the time when it began to wait, which is before the change.
SEEN = """code => new Promise(done => {
    const cell = () => document.evaluate(`//a[bdi="${code}"]`, document).iterateNext();
    const old = cell(), began = performance.now();
    const watch = new MutationObserver(() => {
        if (cell() === old) return;
        watch.disconnect();
        window.seen = performance.now() - began;
    });
    window.seen = null;
    watch.observe(document.getElementById("board-part"), { childList: true, subtree: true });
    done();
})"""


class Watched(NamedTuple):
    gaps_ms: list[float]
    """From one frame to the next."""
    long_tasks_ms: list[float]
    """Of the browser's own kind: over 50 ms."""
    replaced: int
    """Cells."""


def measure(arena: Arena) -> Finding:
    seconds = 5 if arena.quick else 20
    ground = arena.ground("holdfast", 0)
    own = office.fill(ground.database_url, 2 * UNITS_OF_A_TOWER, arena.progress)
    codes = database.value(ground.database_url, ON_SALE, TOWER)
    watched: dict[str, Watched] = {}
    with holdfast(ground, arena.logs) as contestant, chromium() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        secure = contestant.address.replace("http:", "https:")
        context.add_cookies([{"name": COOKIE, "value": own.token, "url": secure, "secure": True}])
        page = context.new_page()
        page.goto(f"{contestant.address}/backoffice/projects/{TOWER}")
        page.wait_for_selector("[data-live].on", state="attached")
        seen = _seen(page, contestant, codes[-(10 if arena.quick else 50) :])
        arena.progress(f"board: a change elsewhere is seen after {median(seen):.0f} ms")
        watched[LEFT_ALONE] = _watch(page, seconds)
        with _changing(contestant, codes[: -len(seen)]):
            watched[CHANGING] = _watch(page, seconds)
    if watched[CHANGING].replaced < CHANGES_A_SECOND * seconds / 2:
        raise InvalidRun(f"Only {watched[CHANGING].replaced} cells changed on the board.")
    return _finding(watched, seen)


def _seen(page: Page, contestant: Contestant, codes: list[str]) -> list[float]:
    """How long until a change that was made through the API stood on the board, in ms."""
    found = []
    with OneConnection(contestant) as client:
        for code in codes:
            page.evaluate(SEEN, code)
            _set_status(client, code, "unavailable")
            page.wait_for_function("() => window.seen !== null")
            found.append(float(page.evaluate("() => window.seen")))
    return found


def _watch(page: Page, seconds: int) -> Watched:
    seen: dict[str, Any] = page.evaluate(WATCH, seconds)
    frames = seen["frames"]
    gaps = [later - sooner for sooner, later in pairwise(frames)]
    return Watched(gaps, seen["tasks"], seen["replaced"])


@contextmanager
def _changing(contestant: Contestant, codes: list[str]) -> Iterator[None]:
    """Units go off sale and on sale again, at their times, through the API."""
    stop = Event()
    with ThreadPoolExecutor(1) as threads:
        changing = threads.submit(_change, contestant, codes, stop)
        try:
            yield
        finally:
            stop.set()
        changing.result()


def _change(contestant: Contestant, codes: list[str], stop: Event) -> None:
    statuses = cycle(["unavailable"] * len(codes) + ["available"] * len(codes))
    due = time.monotonic()
    with OneConnection(contestant) as client:
        for code, status in zip(cycle(codes), statuses, strict=False):
            due += 1 / CHANGES_A_SECOND
            if stop.wait(max(0.0, due - time.monotonic())):
                return
            _set_status(client, code, status)


def _set_status(client: OneConnection, code: str, status: str) -> None:
    path = f"/v1/integration/projects/{TOWER}/units/{quote(code, safe='')}"
    client.request("PATCH", path, json.dumps({"status": status}))


def _finding(watched: dict[str, Watched], seen: list[float]) -> Finding:
    figures = {
        name: {
            "frames_per_second": 1000 * len(one.gaps_ms) / sum(one.gaps_ms),
            "p95_ms": quantiles(one.gaps_ms, n=20, method="inclusive")[18],
            "longest_ms": max(one.gaps_ms),
            "long_tasks": float(len(one.long_tasks_ms)),
            "cells_replaced": float(one.replaced),
        }
        for name, one in watched.items()
    }
    rows = [
        [
            name,
            f"{one['frames_per_second']:.0f}",
            f"{one['p95_ms']:.1f}",
            f"{one['longest_ms']:.0f}",
            f"{one['long_tasks']:.0f}",
            f"{one['cells_replaced']:,.0f}",
        ]
        for name, one in figures.items()
    ]
    heads = ["board", "frames/s", "p95 of a frame, ms", "longest, ms", "tasks over 50 ms", "cells replaced"]
    table = Table(heads, rows, "Chromium without a graphics card, which scrolls all the time.")
    late = {"p50_ms": median(seen), "longest_ms": max(seen)}
    caption = f"Until a change made elsewhere stands on the board: {len(seen)} one after the other."
    seen_table = Table(
        ["", "p50 ms", "longest ms"], [["seen", *(f"{one:.0f}" for one in late.values())]], caption
    )
    kept = figures[CHANGING]["frames_per_second"] / figures[LEFT_ALONE]["frames_per_second"]
    targets = [
        Target(f"frames a second while {CHANGING}, to a board left alone", kept, SMOOTH, True, "×"),
        Target("the latest change seen elsewhere", late["longest_ms"], SEEN_WITHIN_MS, False, " ms"),
    ]
    title = f"The board of {UNITS_OF_A_TOWER:,} units in a browser"
    return Finding("board", title, [table, seen_table], targets, {**figures, "seen": late})
