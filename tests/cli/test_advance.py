"""`holdfast advance`: after a recovery that lost changes, nothing is given out a second time."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import UNLIMITED
from tests.support import commands, feed
from tests.support.backoffice import PROJECTS
from tests.support.bodies import full
from tests.support.client import Project, Unit, succeeded, with_body
from tests.support.clusters import NEWEST, Cluster
from tests.support.installation import Installation, installed
from tests.support.server import WEBHOOKS, wait_until
from tests.support.sql import Sql, as_owner, with_database
from tests.support.webhooks import DELIVERIES, ENDPOINTS, NOBODY_LISTENS

Given = dict[str, set[Any]]
CODE = "A-1"


class Copies:
    """Databases as they were at one moment."""

    def __init__(self, cluster: Cluster, original: str) -> None:
        self._cluster, self._original, self._made = cluster, original, [original]

    def make(self) -> str:
        name = f"{self._name(self._original)}_{len(self._made)}"
        with Sql(with_database(self._cluster.url, "postgres")) as sql:
            sql.execute(f"create database {name} template {self._name(self._original)}")
        self._made.append(with_database(self._original, name))
        return self._made[-1]

    def drop(self) -> None:
        for url in self._made:
            self._cluster.drop_database(url)

    @staticmethod
    def _name(url: str) -> str:
        return url.split("?")[0].rsplit("/", 1)[1]


@pytest.fixture
def copies(cluster_of: Callable[[int], Cluster]) -> Iterator[Copies]:
    """Of a database with a unit that was sold, one on sale, and an endpoint."""
    cluster = cluster_of(NEWEST)
    made = Copies(cluster, cluster.new_database())
    with running(made._original) as office:
        tower = add_project(office, "tower")
        for code in ("A-0", CODE):
            Unit(office.http, tower, code).create(full())
        office.desk.sold(Unit(office.http, tower, "A-0"))
        succeeded(office.http.post(ENDPOINTS, **with_body({"url": NOBODY_LISTENS})), 201)
        feed.read_on(office.http, None)
    yield made
    made.drop()


def running(url: str) -> Any:
    return installed(url, {**UNLIMITED, **WEBHOOKS})


def advance(url: str) -> dict[str, Any]:
    return commands.run_for_json({"HOLDFAST_DATABASE_URL": as_owner(url)}, "advance")


def add_project(office: Installation, slug: str) -> Project:
    body = succeeded(office.http.post(PROJECTS, **with_body({"slug": slug, "name": slug})), 201)
    return Project(body["id"], slug, slug)


def units(office: Installation) -> list[Unit]:
    """One that was there before, a new one beside it, and the first of a new project."""
    (tower,) = (one for one in projects(office) if one.slug == "tower")
    later = add_project(office, "later")
    made = [Unit(office.http, tower, CODE), Unit(office.http, tower, "B-1"), Unit(office.http, later, CODE)]
    for unit in made[1:]:
        unit.create(full())
    return made


def projects(office: Installation) -> list[Project]:
    answer = succeeded(office.http.get("/v1/integration/projects"))
    return [Project(one["id"], one["slug"], one["name"]) for one in answer["projects"]]


def give_out(office: Installation, cursor: str) -> Given:
    """Do the same on each copy, and return what it has given out. ``cursor``: the events follow behind it."""
    given: Given = {"references": set(), "etags": set(), "refs": set()}
    made = units(office)
    for unit in made:
        given["etags"] |= {(unit.url, unit.etag)}
        given["references"] |= {office.desk.cancelled(unit).reference}
        given["etags"] |= {(unit.url, unit.etag)}
    given["refs"] = {unit.read()["ref"] for unit in made[1:]}
    events, end = feed.read_on(office.http, cursor)
    assert len(events) == 6
    given["events"] = {event["id"] for event in events}
    given["deliveries"] = {one["id"] for one in succeeded(office.http.get(DELIVERIES))["deliveries"]}
    given["cursors"] = {end}
    for kind, statement in {
        "positions": "select position from event where type in ('unit.held', 'unit.released') "
        "and position > 3",
        "claim tokens": "select nextval('claim_token') from generate_series(1, 100)",
        "audit entries": "select max(id) from audit_entry",
        "boards": "select (slug, turn, layout_turn)::text from project",
    }.items():
        given[kind] = {tuple(row.values()) for row in office.sql.rows(statement)}
    return given


def end_of_feed(url: str) -> str:
    with running(url) as office:
        return feed.read_on(office.http, None)[1]


def test_nothing_is_given_out_twice_whichever_moment_is_recovered_how_often(copies: Copies) -> None:
    start = copies.make()
    cursor = end_of_feed(start)
    with running(start) as office:
        lost = give_out(office, cursor)
    (lost_cursor,) = lost["cursors"]
    seen = [lost]
    for _ in range(2):
        recovered = copies.make()
        assert advance(recovered) == {"advanced": True}
        with running(recovered) as office:
            # The cursor points into the lost time, and yet the reader gets each of the new events.
            seen.append(give_out(office, lost_cursor))
            (lost_cursor,) = seen[-1]["cursors"]
    for kind in lost:
        given = [one[kind] for one in seen]
        assert all(given), kind
        assert len(set.union(*given)) == sum(map(len, given)), kind


@pytest.mark.slow
def test_without_it_everything_would_be_given_out_twice(copies: Copies) -> None:
    """The control: what the test above looks for is there."""
    given = []
    for _ in range(2):
        copy = copies.make()
        cursor = end_of_feed(copy)
        with running(copy) as office:
            given.append(give_out(office, cursor))
    for kind in given[0]:
        assert given[0][kind] & given[1][kind], kind


@pytest.mark.slow
def test_a_change_with_an_etag_of_the_lost_time_is_refused(copies: Copies) -> None:
    with running(copies.make()) as office:
        made = units(office)
        lost = [unit.etag for unit in made]
    recovered = copies.make()
    advance(recovered)
    with running(recovered) as office:
        assert [unit.etag for unit in units(office)] != lost
        for unit, etag in zip(
            [Unit(office.http, project, code) for project, code in addresses(office)], lost, strict=True
        ):
            for ask in (unit.put, unit.patch):
                assert ask(full(priceSar=7), If_Match=etag).status_code == 412
            assert unit.get(If_None_Match=etag).status_code == 200


def addresses(office: Installation) -> list[tuple[Project, str]]:
    known = {one.slug: one for one in projects(office)}
    return [(known["tower"], CODE), (known["tower"], "B-1"), (known["later"], CODE)]


def test_it_is_refused_while_the_service_runs_and_does_no_harm_twice(copies: Copies) -> None:
    url = copies.make()
    with Sql(url) as worker:
        worker.execute("set application_name = 'holdfast background'")
        told = commands.run_refused({"HOLDFAST_DATABASE_URL": as_owner(url)}, 1, "advance")
        assert "stop every `serve` and `work` first" in told
    told = commands.run_refused({"HOLDFAST_DATABASE_URL": url}, 1, "advance")
    assert "Connect as the owner" in told
    for _ in range(2):
        advance(url)
    end = end_of_feed(url)
    with running(url) as office:
        assert len(give_out(office, end)["references"]) == 3


def test_numbers_of_bookings_do_not_end_however_often_they_are_advanced(copies: Copies) -> None:
    url = copies.make()
    with Sql(as_owner(url)) as sql:
        last = "select last_value from booking_number"
        sql.execute("select setval('booking_number', 4294967295 - 3000000)")
        advance(url)
        assert 4294967295 - 2000000 <= sql.value(last) < 4294967295 - 1900000


@pytest.mark.slow
def test_reports_count_events_on_both_sides_of_the_gap(copies: Copies) -> None:
    url = copies.make()
    advance(url)
    end = end_of_feed(url)
    with running(url) as office:
        give_out(office, end)
        look = "select summed_position = last_position from event_sums, event_feed"
        wait_until(lambda: office.sql.value(look))
        assert office.sql.value("select sum(steps) from event_hour") == 3 + 6
