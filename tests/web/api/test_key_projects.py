"""A key that is limited to projects sees nothing of the others."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.support import feed as feed_pages
from tests.support.app import InProcessApp
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, integration_client, put_array
from tests.support.feed import TRIM_UP_TO_UNIT, Feed, read_on
from tests.support.keys import Keys
from tests.support.problems import problem
from tests.support.sql import Sql


@pytest.fixture
def other(new_project: Callable[[], Project]) -> Project:
    return new_project()


@pytest.fixture
def limited(server: InProcessApp, keys: Keys, project: Project) -> Iterator[httpx.Client]:
    """A client whose key is for `project` only."""
    with integration_client(server.address, keys.issue(projects=[project.slug]).text) as http:
        yield http


def test_its_own_project_is_open(limited: httpx.Client, project: Project) -> None:
    unit = Unit(limited, project, "A-1")
    assert unit.put(minimal()).status_code == 201
    assert unit.patch({"bedrooms": 1}).status_code == 200
    assert unit.exists


def test_another_project_is_not_there(limited: httpx.Client, http: httpx.Client, other: Project) -> None:
    there = Unit(http, other, "A-1")
    there.create(full())
    etag = there.etag
    unit = Unit(limited, other, "A-1")
    for response in (unit.get(), unit.put(full(type="villa")), unit.patch({"type": "villa"})):
        problem(response, 404)
    problem(limited.get(other.units_url), 404)
    problem(put_array(limited, other, [minimal(code="A-1")]), 404)
    assert there.etag == etag


def test_another_project_looks_like_an_unknown_one(limited: httpx.Client, other: Project) -> None:
    unknown = Project("", other.slug[:-1] + ("x" if other.slug[-1] != "x" else "y"), "")
    answers = [problem(Unit(limited, where, "A-1").get(), 404) for where in (other, unknown)]
    for answer, where in zip(answers, (other, unknown), strict=True):
        answer.pop("requestId")
        answer["detail"] = answer["detail"].replace(where.slug, "SLUG")
    assert answers[0] == answers[1]


def test_the_projects_are_filtered(limited: httpx.Client, project: Project, other: Project) -> None:
    answer = limited.get("/v1/integration/projects").json()
    assert [item["slug"] for item in answer["projects"]] == [project.slug]
    assert answer["nextCursor"] is None


def test_several_projects_may_be_named(
    server: InProcessApp, keys: Keys, project: Project, other: Project
) -> None:
    key = keys.issue(projects=[project.slug, other.slug])
    with integration_client(server.address, key.text) as http:
        slugs = {item["slug"] for item in http.get("/v1/integration/projects").json()["projects"]}
    assert slugs == {project.slug, other.slug}


def test_the_feed_is_filtered(
    limited: httpx.Client, http: httpx.Client, project: Project, other: Project, feed: Feed
) -> None:
    start = feed.end()
    for where in (project, other, project, other):
        unit = Unit(http, where, f"A-{len(feed.of(where))}")
        unit.create(minimal())
        unit.patch({"status": "unavailable"})
    events, _ = read_on(limited, start, 1)
    assert [event["data"]["unit"]["projectSlug"] for event in events] == [project.slug] * 2


def test_the_filtered_feed_goes_on_past_the_others(
    limited: httpx.Client, http: httpx.Client, project: Project, other: Project, feed: Feed
) -> None:
    cursor = feed.end()
    for number in range(5):
        unit = Unit(http, other, f"A-{number}")
        unit.create(minimal())
        unit.patch({"status": "unavailable"})
    answer = feed_pages.page(limited, after=cursor, limit=2)
    assert answer["events"] == []
    mine = Unit(http, project, "A-1")
    mine.create(minimal())
    mine.patch({"status": "unavailable"})
    (event,) = feed_pages.page(limited, after=answer["nextCursor"], limit=1)["events"]
    assert event["data"]["unit"]["projectSlug"] == project.slug


def test_a_reader_of_a_quiet_project_is_not_left_behind(
    limited: httpx.Client, http: httpx.Client, other: Project, feed: Feed, sql: Sql
) -> None:
    """Its cursor moves with the feed, so that it is not among the forgotten ones one day."""
    unit = Unit(http, other, "A-1")
    unit.create(minimal())
    unit.patch({"status": "unavailable"})
    cursor = feed_pages.page(limited, after=feed.end())["nextCursor"]
    unit.patch({"status": "available"})
    cursor = feed_pages.page(limited, after=cursor)["nextCursor"]
    trimmed = sql.value("select trimmed_position from event_feed")
    sql.execute(TRIM_UP_TO_UNIT, unit.read()["id"])
    try:
        assert feed_pages.page(limited, after=cursor)["events"] == []
    finally:
        sql.execute("update event_feed set trimmed_position = $1", trimmed)
