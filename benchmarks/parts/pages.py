"""Every page of the back office, with very many units and a very long log of deliveries."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from statistics import median, quantiles
from urllib.parse import quote
from uuid import UUID

from benchmarks import database, office
from benchmarks.arena import Arena
from benchmarks.contestants import Ground, holdfast
from benchmarks.delivering import add_endpoints, forget_endpoints
from benchmarks.delivering_log import write_log
from benchmarks.office import CITY, TOWER, Office
from benchmarks.one_connection import OneConnection
from benchmarks.report.findings import Finding, Table, Target

LIMIT_MS = 100.0
ENDPOINTS = 10
PAGES_WARMED = 3
LONG_AGO = f"{datetime.now(UTC) - timedelta(days=60):%Y-%m-%dT00:00}"


def measure(arena: Arena) -> Finding:
    units, deliveries, repeats = (10_000, 100_000, 10) if arena.quick else (100_000, 5_000_000, 60)
    ground, own = _ground(arena, units, deliveries)
    times: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    with holdfast(ground, arena.logs) as contestant, OneConnection(contestant, cookie=_cookie(own)) as client:
        for name, path in _pages(ground, own).items():
            taken = [client.request("GET", path) for _ in range(PAGES_WARMED + repeats)][PAGES_WARMED:]
            times[name] = [1000 * seconds for seconds, _ in taken]
            sizes[name] = len(taken[0][1])
            arena.progress(f"pages: {name}: {median(times[name]):.1f} ms")
    return _finding(units, deliveries, times, sizes)


def _ground(arena: Arena, units: int, deliveries: int) -> tuple[Ground, Office]:
    ground = arena.ground("pages", 0)
    own = office.fill(ground.database_url, units, arena.progress)
    forget_endpoints(ground.database_url)
    add_endpoints(ground.database_url, [f"https://receiver-{n}.example.com/" for n in range(ENDPOINTS)])
    # Half of the rows of the log are attempts.
    write_log(ground.database_url, 2 * deliveries, arena.progress)
    return ground, own


def _cookie(own: Office) -> str:
    return f"__Host-holdfast_session={own.token}"


def _pages(ground: Ground, own: Office) -> Mapping[str, str]:
    url = ground.database_url
    delivery = database.value(url, "select id from ended_delivery order by ended_at desc limit 1")
    endpoint = database.value(url, "select id from endpoint order by id limit 1")
    person = database.value(url, "select id from staff order by id limit 1")
    paths = _paths(own.reference, delivery, endpoint, person)
    return {name: f"/backoffice{path}" for name, path in paths.items()}


def _paths(reference: str, delivery: UUID, endpoint: UUID, person: UUID) -> dict[str, str]:
    tower, city, webhooks = f"/projects/{TOWER}", f"/projects/{CITY}", "/settings/api/webhooks"
    return {
        "projects": "/projects",
        "board of 2 000 units": tower,
        "board of a building in a city": city,
        "table": f"{tower}?view=table",
        "table of the city": f"{city}?view=table",
        "figures": f"{tower}/figures",
        "figures of the city": f"{city}/figures",
        "layout of the city": f"{city}/layout",
        "import": f"{city}/import",
        "project settings": f"{tower}/settings",
        "filtered table of the city": f"{city}?view=table&status=sold&bedrooms=2&priceFrom=700000",
        "unit": f"{tower}/units/A-0101",
        "history of a unit": f"{tower}/units/A-0101/history",
        "new project": "/new-project",
        "bookings": "/bookings",
        "bookings of a project": f"/bookings?project={TOWER}",
        "refunds due": "/bookings?status=refund-due",
        "booking": f"/bookings/{reference}",
        "settings": "/settings",
        "keys": "/settings/api/keys",
        "new key": "/settings/api/keys/new",
        "endpoints": webhooks,
        "endpoint": f"{webhooks}/{endpoint}",
        "new endpoint": f"{webhooks}/new",
        "endpoint, edited": f"{webhooks}/{endpoint}/edit",
        "reconciliation": f"{webhooks}/{endpoint}/reconciliation",
        "resend all failed, counted": f"{webhooks}/{endpoint}/recover?since={LONG_AGO}",
        "deliveries": "/deliveries",
        "failed deliveries": "/deliveries?status=failed",
        "deliveries by event": "/deliveries?event=unit.sold",
        "deliveries by answer": "/deliveries?code=5xx",
        "deliveries of an endpoint": f"/deliveries?endpoint={endpoint}&status=failed",
        "deliveries of long ago": f"/deliveries?until={LONG_AGO}",
        "deliveries of a unit": f"/deliveries?unit={quote('A-0101')}",
        "delivery": f"/deliveries/{delivery}",
        "staff": "/staff",
        "person": f"/staff/{person}",
        "new person": "/staff/new",
        "audit trail": "/audit",
        "audit trail of a project": f"/audit?project={TOWER}&action=create",
        "account": "/account",
    }


def _finding(units: int, deliveries: int, times: dict[str, list[float]], sizes: dict[str, int]) -> Finding:
    figures = {
        name: {
            "p50_ms": median(taken),
            "p95_ms": quantiles(taken, n=20, method="inclusive")[18],
            "kib": sizes[name] / 1024,
        }
        for name, taken in times.items()
    }
    slowest = max(figures, key=lambda name: figures[name]["p95_ms"])
    target = Target(
        f"p95 of the slowest page ({slowest})", figures[slowest]["p95_ms"], LIMIT_MS, False, " ms"
    )
    rows = [
        [name, f"{one['p50_ms']:.1f}", f"{one['p95_ms']:.1f}", f"{one['kib']:,.0f}"]
        for name, one in figures.items()
    ]
    table = Table(["page", "p50 ms", "p95 ms", "KiB"], rows, "One browser, one page after the other.")
    title = f"Pages of the back office with {units:,} units and {deliveries:,} deliveries"
    return Finding("pages", title, [table], [target], figures)
