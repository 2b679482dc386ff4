"""The feed of one endpoint: what it subscribes to, each item under the id of its delivery."""

from collections.abc import Callable, Iterator
from uuid import uuid4

import httpx
import pytest

from tests.support.app import InProcessApp
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import EVENTS, Feed, concerning, page
from tests.support.keys import Keys
from tests.support.problems import invalid, problem
from tests.support.webhooks import Inbox, Registrar


@pytest.fixture
def units(http: httpx.Client, project: Project) -> list[Unit]:
    found = [Unit(http, project, f"A-{number}") for number in range(3)]
    for unit in found:
        unit.create(minimal(status="unavailable"))
    return found


@pytest.fixture
def limited_http(server: InProcessApp, keys: Keys, project: Project) -> Iterator[httpx.Client]:
    """With a key of the integration API that is limited to `project`."""
    with integration_client(server.address, keys.issue(projects=[project.slug]).text) as client:
        yield client


def flip(unit: Unit) -> None:
    """On sale, and off sale again: two events."""
    for status in ("available", "unavailable"):
        assert unit.patch({"status": status}).status_code == 200


def test_it_has_what_was_delivered_under_the_same_ids(
    registrar: Registrar, inbox: Inbox, feed: Feed, http: httpx.Client, units: list[Unit], project: Project
) -> None:
    start = feed.end()
    made = registrar.add(inbox.url, projects=[project.slug])
    for unit in units:
        flip(unit)
    arrived = {post.event["id"]: post.event for post in (inbox.next() for _ in range(6))}
    told = page(http, after=start, endpoint=made["id"])["events"]
    assert [one["data"]["unit"]["code"] for one in told] == ["A-0", "A-0", "A-1", "A-1", "A-2", "A-2"]
    assert {one["id"]: one for one in told} == arrived
    assert {one["id"] for one in told}.isdisjoint(one["id"] for one in feed.of(project))


def test_two_endpoints_have_ids_of_their_own(
    registrar: Registrar, feed: Feed, http: httpx.Client, units: list[Unit], project: Project
) -> None:
    start = feed.end()
    first, second = (registrar.add(projects=[project.slug], paused=True) for _ in range(2))
    flip(units[0])
    ids = [
        [one["id"] for one in page(http, after=start, endpoint=made["id"])["events"]]
        for made in (first, second)
    ]
    assert len(ids[0]) == len(ids[1]) == 2
    assert set(ids[0]).isdisjoint(ids[1])


def test_it_has_only_the_chosen_events_of_the_chosen_projects(
    registrar: Registrar,
    feed: Feed,
    http: httpx.Client,
    units: list[Unit],
    project: Project,
    new_project: Callable[[], Project],
) -> None:
    start = feed.end()
    chosen = registrar.add(projects=[project.slug], events=["unit.available"], paused=True)
    elsewhere = registrar.add(projects=[new_project().slug], paused=True)
    flip(units[0])
    assert [one["type"] for one in page(http, after=start, endpoint=chosen["id"])["events"]] == [
        "unit.available"
    ]
    assert page(http, after=start, endpoint=elsewhere["id"])["events"] == []


def test_what_happened_before_it_was_registered_is_not_in_it(
    registrar: Registrar, feed: Feed, http: httpx.Client, units: list[Unit], project: Project
) -> None:
    start = feed.end()
    flip(units[0])
    made = registrar.add(projects=[project.slug], paused=True)
    assert page(http, after=start, endpoint=made["id"])["events"] == []


def test_its_cursors_are_those_of_the_feed(
    registrar: Registrar, feed: Feed, http: httpx.Client, units: list[Unit], project: Project
) -> None:
    start = feed.end()
    made = registrar.add(projects=[project.slug], events=["unit.unavailable"], paused=True)
    for unit in units:
        flip(unit)
    first = page(http, after=start, endpoint=made["id"], limit=2)
    rest = page(http, after=first["nextCursor"], endpoint=made["id"], limit=2)
    codes = [one["data"]["unit"]["code"] for one in (*first["events"], *rest["events"])]
    assert codes == ["A-0", "A-1", "A-2"]
    assert concerning(project, page(http, after=rest["nextCursor"])["events"]) == []


def test_a_limited_key_reads_the_feed_of_endpoints_within_its_projects(
    registrar: Registrar, feed: Feed, limited_http: httpx.Client, units: list[Unit], project: Project
) -> None:
    start = feed.end()
    own = registrar.add(projects=[project.slug], paused=True)
    others = registrar.add(paused=True)
    flip(units[0])
    assert len(page(limited_http, after=start, endpoint=own["id"])["events"]) == 2
    refused = problem(limited_http.get(EVENTS, params={"endpoint": others["id"]}), 404)
    assert refused["type"] == "/problems/unknown-endpoint"


def test_what_is_no_endpoint_has_no_feed(registrar: Registrar, http: httpx.Client) -> None:
    invalid(http.get(EVENTS, params={"endpoint": "x", "limit": "0"}), "/query/endpoint", "/query/limit")
    problem(http.get(EVENTS, params={"endpoint": str(uuid4())}), 404)
    made = registrar.add()
    registrar.remove(made["id"])
    problem(http.get(EVENTS, params={"endpoint": made["id"]}), 404)
