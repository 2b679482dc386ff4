"""GET …/events: every committed event in one order, with a cursor to go on from.

With ``endpoint`` it is the feed of one endpoint: what it subscribes to, each under the id of its delivery.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import EVENTS, TRIM_UP_TO_UNIT, Feed, chain_is_unbroken, concerning, page, read_on
from tests.support.problems import invalid, problem
from tests.support.sql import Sql
from tests.support.webhooks import Inbox, Registrar

INSERT_EVENT = """
    insert into event (id, project_id, unit_id, unit_version, type, previous_status, status, created_at)
    values ($1, $2, $3, 1000, 'unit.unavailable', 'available', 'unavailable', clock_timestamp())
"""
WRITERS, TURNS = 8, 10


def toggle(unit: Unit, times: int) -> None:
    """Off sale, on sale, off sale again: so many events."""
    for number in range(times):
        status = "unavailable" if number % 2 == 0 else "available"
        assert unit.patch({"status": status}).status_code == 200


@pytest.fixture
def trim(sql: Sql) -> Iterator[Callable[[Unit], None]]:
    """Have the feed forget everything up to the last event of a unit, until the end of the test."""
    trimmed = sql.value("select trimmed_position from event_feed")
    yield lambda unit: sql.execute(TRIM_UP_TO_UNIT, unit.read()["id"])
    sql.execute("update event_feed set trimmed_position = $1", trimmed)


def test_the_feed_is_read_on_from_any_cursor_with_any_limit(
    http: httpx.Client, stored: Unit, feed: Feed
) -> None:
    start = feed.end()
    toggle(stored, 10)
    ids = [event["id"] for event in feed.of(stored)]
    assert len(ids) == 10
    assert chain_is_unbroken(feed.of(stored))
    for limit in (1, 3, 9, 10, 11, 1000):
        events, end = read_on(http, start, limit)
        assert [event["id"] for event in concerning(stored, events)] == ids
        assert concerning(stored, page(http, after=end)["events"]) == []
    assert len(page(http, after=start, limit=3)["events"]) == 3
    assert page(http, after=start, limit=3) == page(http, after=start, limit=3)
    assert page(http, limit=1)["events"] == feed.all()[:1]
    everything = [event["id"] for event in feed.all()]
    assert len(everything) == len(set(everything))


def test_an_acknowledged_change_is_in_the_feed_at_once(http: httpx.Client, stored: Unit, feed: Feed) -> None:
    start = feed.end()
    for status in ("unavailable", "available") * 3:
        assert stored.patch({"status": status}).status_code == 200
        fresh, start = read_on(http, start)
        assert len(concerning(stored, fresh)) == 1


def test_an_event_that_commits_late_is_not_skipped(
    http: httpx.Client, sql: Sql, stored: Unit, feed: Feed
) -> None:
    early = Unit(http, stored.project, "A-102")
    unit_id = early.create(minimal())["id"]
    start, late_id = feed.end(), uuid4()
    sql.execute("begin")
    try:
        sql.execute(INSERT_EVENT, late_id, stored.project.id, unit_id)
        toggle(stored, 4)
        before, cursor = read_on(http, start, 2)
    finally:
        sql.execute("commit")
    after, _ = read_on(http, cursor, 2)
    assert [event["data"]["unit"]["code"] for event in concerning(stored.project, before)] == [
        stored.code
    ] * 4
    assert [event["id"] for event in concerning(stored.project, after)] == [str(late_id)]


def test_an_event_that_never_commits_is_never_seen(
    http: httpx.Client, sql: Sql, stored: Unit, feed: Feed
) -> None:
    start, unit_id = feed.end(), stored.read()["id"]
    sql.execute("begin")
    sql.execute(INSERT_EVENT, uuid4(), stored.project.id, unit_id)
    sql.execute("rollback")
    toggle(stored, 2)
    assert len(concerning(stored, read_on(http, start)[0])) == 2


def test_a_reader_misses_nothing_while_eight_write(
    server: InProcessApp, api_key: str, http: httpx.Client, project: Project, feed: Feed
) -> None:
    start = feed.end()
    done = threading.Event()
    together = threading.Barrier(WRITERS, timeout=60)

    def write(number: int) -> None:
        with integration_client(server.address, api_key) as own:
            unit, shared = Unit(own, project, f"W-{number}"), Unit(own, project, "SHARED")
            unit.create(minimal())
            shared.put(minimal())
            together.wait()
            for _ in range(TURNS // 2):
                toggle(unit, 2)
                toggle(shared, 2)

    def read() -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []
        cursor = start
        with integration_client(server.address, api_key) as own:
            while True:
                last_round = done.is_set()
                fresh, cursor = read_on(own, cursor, 7)
                seen += fresh
                if last_round:
                    return seen

    with ThreadPoolExecutor(WRITERS + 1) as pool:
        reading = pool.submit(read)
        try:
            list(pool.map(write, range(WRITERS)))
        finally:
            done.set()
        seen = reading.result()
    again, _ = read_on(http, start, 1000)
    assert [event["id"] for event in again[: len(seen)]] == [event["id"] for event in seen]
    seen, again = concerning(project, seen), concerning(project, again)
    assert len(seen) == len(again) == len({event["id"] for event in seen})
    assert len(seen) >= WRITERS * TURNS
    chains: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in seen:
        chains[event["data"]["unit"]["code"]].append(event)
    assert len(chains) == WRITERS + 1
    assert all(chain_is_unbroken(chain) for chain in chains.values())


def test_every_fault_of_the_query_is_reported_at_once(http: httpx.Client) -> None:
    query = {"after": "!", "limit": "0", "endpoint": "x"}
    invalid(http.get(EVENTS, params=query), "/query/after", "/query/limit", "/query/endpoint")


def test_a_cursor_older_than_what_is_kept_is_gone(
    http: httpx.Client, stored: Unit, feed: Feed, trim: Callable[[Unit], None]
) -> None:
    old = feed.end()
    toggle(stored, 3)
    recent = feed.end()
    trim(stored)
    problem(http.get(EVENTS, params={"after": old}), 410)
    assert concerning(stored, page(http, after=recent)["events"]) == []
    assert http.get(EVENTS).status_code == 200


def test_a_limited_key_reads_the_events_of_its_projects_and_goes_on_past_the_others(
    limited: httpx.Client, stored: Unit, elsewhere: Unit, feed: Feed
) -> None:
    start = feed.end()
    for _ in range(2):
        toggle(stored, 2)
        toggle(elsewhere, 2)
    events, _ = read_on(limited, start, 1)
    assert [event["data"]["unit"]["projectSlug"] for event in events] == [stored.project.slug] * 4
    cursor = feed.end()
    toggle(elsewhere, 5)
    answer = page(limited, after=cursor, limit=2)
    assert answer["events"] == []
    toggle(stored, 1)
    (event,) = page(limited, after=answer["nextCursor"], limit=1)["events"]
    assert event["data"]["unit"]["projectSlug"] == stored.project.slug


def test_a_reader_of_a_quiet_project_is_not_left_behind(
    limited: httpx.Client, elsewhere: Unit, feed: Feed, trim: Callable[[Unit], None]
) -> None:
    """Its cursor moves with the feed, so that it is not among the forgotten ones one day."""
    cursor = feed.end()
    for _ in range(2):
        toggle(elsewhere, 1)
        cursor = page(limited, after=cursor)["nextCursor"]
        elsewhere.patch({"status": "available"})
    cursor = page(limited, after=cursor)["nextCursor"]
    trim(elsewhere)
    assert page(limited, after=cursor)["events"] == []


def test_the_feed_of_an_endpoint_has_what_was_delivered_under_the_same_ids(
    registrar: Registrar, inbox: Inbox, feed: Feed, http: httpx.Client, stored: Unit
) -> None:
    start = feed.end()
    made, same = (registrar.add(url, projects=[stored.project.slug]) for url in (inbox.url, inbox.url))
    toggle(stored, 2)
    arrived = {post.event["id"]: post.event for post in (inbox.next() for _ in range(4))}
    told = page(http, after=start, endpoint=made["id"])["events"]
    assert [one["type"] for one in told] == ["unit.unavailable", "unit.available"]
    told += page(http, after=start, endpoint=same["id"])["events"]
    assert {one["id"]: one for one in told} == arrived
    assert len(arrived) == 4
    assert arrived.keys().isdisjoint(one["id"] for one in feed.of(stored))


def test_the_feed_of_an_endpoint_has_what_it_chose_since_it_is_there(
    registrar: Registrar, feed: Feed, http: httpx.Client, stored: Unit, elsewhere: Unit
) -> None:
    start = feed.end()
    toggle(stored, 2)
    chosen = registrar.add(projects=[stored.project.slug], events=["unit.unavailable"], paused=True)
    foreign = registrar.add(projects=[elsewhere.project.slug], paused=True)
    for _ in range(3):
        toggle(stored, 2)
    first = page(http, after=start, endpoint=chosen["id"], limit=2)
    rest = page(http, after=first["nextCursor"], endpoint=chosen["id"], limit=2)
    assert [one["type"] for one in (*first["events"], *rest["events"])] == ["unit.unavailable"] * 3
    # Its cursors are those of the feed.
    behind = concerning(stored, page(http, after=first["nextCursor"])["events"])
    assert [one["type"] for one in behind] == ["unit.available", "unit.unavailable", "unit.available"]
    assert page(http, after=start, endpoint=foreign["id"])["events"] == []


def test_a_limited_key_reads_the_feed_of_endpoints_within_its_projects_only(
    registrar: Registrar, feed: Feed, limited: httpx.Client, http: httpx.Client, stored: Unit
) -> None:
    start = feed.end()
    own = registrar.add(projects=[stored.project.slug], paused=True)["id"]
    others = registrar.add(paused=True)["id"]
    toggle(stored, 2)
    assert len(page(limited, after=start, endpoint=own)["events"]) == 2
    registrar.remove(own)
    for client, unknown in ((limited, others), (limited, own), (http, own), (http, str(uuid4()))):
        refused = problem(client.get(EVENTS, params={"endpoint": unknown}), 404)
        assert refused["type"] == "/problems/unknown-endpoint"
