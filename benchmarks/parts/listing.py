"""List pages at the start, in the middle and at the end of very many units."""

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from statistics import median
from urllib.parse import urlencode

from benchmarks import database, workload
from benchmarks.arena import Arena
from benchmarks.contestants import Ground, holdfast
from benchmarks.one_connection import OneConnection
from benchmarks.parts.growth import many
from benchmarks.report.findings import Finding, Table, Target
from benchmarks.wrk import InvalidRun

PATH = f"/v1/integration/projects/{workload.SLUG}/units"
LARGEST_PAGE, PAGE = 1000, 100
# Medians of such short times wander by this much on an otherwise idle machine.
SAME_COST = 1.25


def measure(arena: Arena) -> Finding:
    ground = arena.ground("holdfast", many(arena))
    repeats = 20 if arena.quick else 100
    since = _take_a_tenth_off_sale(ground)
    figures = {}
    with holdfast(ground, arena.logs) as contestant, OneConnection(contestant) as client:
        for name, query in _filters(since).items():
            cursors, units = _walk(arena, client, name, query)
            figures[name] = _page_times(client, query, cursors, repeats) | {"units": units}
    if figures["all"]["units"] != ground.units:
        raise InvalidRun(f"{ground.units} units, but the pages had {figures['all']['units']}.")
    return _finding(ground.units, figures)


def _filters(a_moment_ago: datetime) -> dict[str, dict[str, str]]:
    return {
        "all": {},
        "status=available": {"status": "available"},
        "status=unavailable": {"status": "unavailable"},
        "updatedSince= a year ago": {"updatedSince": _text(a_moment_ago - timedelta(days=365))},
        "updatedSince= a moment ago": {"updatedSince": _text(a_moment_ago)},
    }


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _take_a_tenth_off_sale(ground: Ground) -> datetime:
    """Then change one unit in a hundred; the time in between tells those from all the others.

    A filter that finds few of very many is the hard one, and what earlier parts changed must not soften it.
    """
    url = ground.database_url
    database.make_ready(url)
    database.execute(url, "update unit set status = 'unavailable' where ref like '%7'")
    a_moment_ago: datetime = database.value(url, "select clock_timestamp() + interval '1 ms'")
    time.sleep(0.01)
    changed = "update unit set version = version + 1, updated_at = clock_timestamp() where ref like '%31'"
    database.execute(url, changed, "vacuum (analyze) unit")
    return a_moment_ago


def _walk(
    arena: Arena, client: OneConnection, name: str, query: dict[str, str]
) -> tuple[dict[str, str | None], int]:
    """The cursors are opaque, so the middle and the end are reached by walking there."""
    cursors: list[str | None] = []
    units = 0
    for cursor, found in _pages(client, query):
        cursors.append(cursor)
        units += found
        if len(cursors) % 50 == 0:
            arena.progress(f"list: {name}: {units:,} units walked")
    # The last page may be short, so the one before it stands for the end.
    end = cursors[max(0, len(cursors) - 2)]
    return {"start": cursors[0], "middle": cursors[len(cursors) // 2], "end": end}, units


def _pages(client: OneConnection, query: dict[str, str]) -> Iterator[tuple[str | None, int]]:
    cursor: str | None = None
    while True:
        answer = json.loads(client.request("GET", _target(query, cursor, LARGEST_PAGE))[1])
        yield cursor, len(answer["units"])
        cursor = answer["nextCursor"]
        if cursor is None:
            return


def _target(query: dict[str, str], cursor: str | None, limit: int) -> str:
    return f"{PATH}?{urlencode(query | ({'cursor': cursor} if cursor else {}) | {'limit': limit})}"


def _page_times(
    client: OneConnection, query: dict[str, str], cursors: dict[str, str | None], repeats: int
) -> dict[str, float]:
    targets = {place: _target(query, cursor, PAGE) for place, cursor in cursors.items()}
    times: dict[str, list[float]] = {place: [] for place in targets}
    for _ in range(repeats):
        for place, target in targets.items():
            times[place].append(client.request("GET", target)[0])
    return {place: median(taken) * 1000 for place, taken in times.items()}


def _finding(units: int, figures: dict[str, dict[str, float]]) -> Finding:
    places = ("start", "middle", "end")
    rows = [
        [name, f"{figure['units']:,}", *(f"{figure[place]:.2f}" for place in places),
         f"{figure['end'] / figure['start']:.2f}×"]
        for name, figure in figures.items()
    ]  # fmt: skip
    columns = ["filter", "units found", "start ms", "middle ms", "end ms", "end to start"]
    worst = max(max(figure["middle"], figure["end"]) / figure["start"] for figure in figures.values())
    target = Target("list page at the middle or end to one at the start, the worst", worst, SAME_COST, False)
    title = f"List pages of {PAGE} among {units:,} units"
    return Finding("list", title, [Table(columns, rows, "Median times.")], [target], dict(figures))
