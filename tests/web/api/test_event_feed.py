"""GET …/events: every committed event in one order, with a cursor to go on from."""

import threading
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support import feed as feed_pages
from tests.support.app import InProcessApp
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import EVENTS, TRIM_UP_TO_UNIT, Feed, chain_is_unbroken, concerning, read_on
from tests.support.problems import invalid, problem
from tests.support.sql import Sql

INSERT_EVENT = """
    insert into event (id, project_id, unit_id, unit_version, type, previous_status, status, created_at)
    values ($1, $2, $3, 1000, 'unit.unavailable', 'available', 'unavailable', clock_timestamp())
"""


def toggle(unit: Unit, times: int) -> None:
    for number in range(times):
        status = "unavailable" if number % 2 == 0 else "available"
        assert unit.patch({"status": status}).status_code == 200


def test_the_end_of_the_feed_has_a_cursor_too(http: httpx.Client, stored: Unit, feed: Feed) -> None:
    toggle(stored, 1)
    answer = feed_pages.page(http, after=feed.end())
    assert concerning(stored, answer["events"]) == []
    assert concerning(stored, feed_pages.page(http, after=answer["nextCursor"])["events"]) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 9, 10, 11, 1000])
def test_the_feed_can_be_read_on_with_any_limit(
    http: httpx.Client, stored: Unit, feed: Feed, limit: int
) -> None:
    start = feed.end()
    toggle(stored, 10)
    events = concerning(stored, read_on(http, start, limit)[0])
    assert [event["id"] for event in events] == [event["id"] for event in feed.of(stored)]
    assert len(events) == 10


def test_a_page_is_as_long_as_asked(http: httpx.Client, stored: Unit, feed: Feed) -> None:
    start = feed.end()
    toggle(stored, 5)
    assert len(feed_pages.page(http, after=start, limit=3)["events"]) == 3


def test_a_cursor_can_be_used_again(http: httpx.Client, stored: Unit, feed: Feed) -> None:
    start = feed.end()
    toggle(stored, 3)
    once, again = (feed_pages.page(http, after=start, limit=3) for _ in range(2))
    assert len(once["events"]) == 3
    assert again == once


def test_without_a_cursor_the_feed_begins_at_its_beginning(
    http: httpx.Client, stored: Unit, feed: Feed
) -> None:
    toggle(stored, 1)
    assert feed_pages.page(http, limit=1)["events"] == feed.all()[:1]


def test_an_acknowledged_change_is_in_the_feed_at_once(http: httpx.Client, stored: Unit, feed: Feed) -> None:
    start = feed.end()
    for number in range(10):
        toggle(stored, 1) if number % 2 == 0 else stored.patch({"status": "available"})
        fresh, start = read_on(http, start)
        assert len(concerning(stored, fresh)) == 1


def test_event_ids_are_never_used_twice(stored: Unit, feed: Feed) -> None:
    toggle(stored, 6)
    ids = [event["id"] for event in feed.all()]
    assert len(ids) == len(set(ids))


def test_events_of_one_unit_come_in_their_order(stored: Unit, feed: Feed) -> None:
    toggle(stored, 8)
    assert chain_is_unbroken(feed.of(stored))


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
    together = threading.Barrier(8, timeout=60)

    def write(number: int) -> None:
        with integration_client(server.address, api_key) as own:
            _toggle_own_and_shared(own, project, number, together)

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

    with ThreadPoolExecutor(9) as pool:
        reading = pool.submit(read)
        try:
            for writing in [pool.submit(write, number) for number in range(8)]:
                writing.result()
        finally:
            done.set()
        seen = reading.result()
    again, _ = read_on(http, start, 1000)
    assert [event["id"] for event in again[: len(seen)]] == [event["id"] for event in seen]
    seen, again = concerning(project, seen), concerning(project, again)
    assert len(seen) == len(again)
    assert len(seen) == len({event["id"] for event in seen})
    assert len(seen) >= 8 * 20
    _assert_chains(seen)


def _toggle_own_and_shared(
    http: httpx.Client, project: Project, number: int, together: threading.Barrier
) -> None:
    unit, shared = Unit(http, project, f"W-{number}"), Unit(http, project, "SHARED")
    unit.create(minimal())
    shared.put(minimal())
    together.wait()
    for turn in range(20):
        status = "unavailable" if turn % 2 == 0 else "available"
        assert unit.patch({"status": status}).status_code == 200
        assert shared.patch({"status": status}).status_code == 200


def _assert_chains(events: list[dict[str, Any]]) -> None:
    chains: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        chains[event["data"]["unit"]["code"]].append(event)
    assert len(chains) == 9
    assert all(chain_is_unbroken(chain) for chain in chains.values())


@pytest.mark.parametrize(
    "cursor", ["nonsense", "-1", "!!!", "9" * 30, "9" * 5000, "\x00", "é", "1.5", "", " 1", "bnVsbA"]
)
def test_a_bad_cursor_is_refused(http: httpx.Client, cursor: str) -> None:
    invalid(http.get(EVENTS, params={"after": cursor}), "/query/after")


def test_a_cursor_of_another_list_is_no_server_fault(http: httpx.Client, stored: Unit) -> None:
    Unit(http, stored.project, "A-102").create(minimal())
    cursor = http.get(stored.project.units_url, params={"limit": 1}).json()["nextCursor"]
    assert http.get(EVENTS, params={"after": cursor}).status_code == 422


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "1000000000", "abc", "1.5", ""])
def test_a_limit_out_of_bounds_is_refused(http: httpx.Client, limit: str) -> None:
    invalid(http.get(EVENTS, params={"limit": limit}), "/query/limit")


def test_every_fault_of_the_query_is_reported_at_once(http: httpx.Client) -> None:
    invalid(http.get(EVENTS, params={"after": "!", "limit": "0"}), "/query/after", "/query/limit")


def test_a_cursor_older_than_what_is_kept_is_gone(
    http: httpx.Client, sql: Sql, stored: Unit, feed: Feed
) -> None:
    old = feed.end()
    toggle(stored, 3)
    recent = feed.end()
    trimmed = sql.value("select trimmed_position from event_feed")
    sql.execute(TRIM_UP_TO_UNIT, stored.read()["id"])
    try:
        problem(http.get(EVENTS, params={"after": old}), 410)
        assert concerning(stored, feed_pages.page(http, after=recent)["events"]) == []
        assert http.get(EVENTS).status_code == 200
    finally:
        sql.execute("update event_feed set trimmed_position = $1", trimmed)
    assert len(concerning(stored, feed_pages.page(http, after=old)["events"])) == 3
