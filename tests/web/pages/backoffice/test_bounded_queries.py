"""A page costs a handful of statements, however much there is to show."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browser.office import open_office
from tests.browser.pages import PAGES, BrowserPage
from tests.browser.scene import Scene, set_up
from tests.support.bodies import full
from tests.support.client import put_array
from tests.support.clusters import NEWEST, Cluster
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.statements import Statements, log_statements
from tests.support.webhooks import an_inbox

AT_MOST = 12
"""Whoever is signed in, what failed, and what the page itself asks."""


@pytest.fixture(scope="module")
def cluster(cluster_of: Callable[[int], Cluster]) -> Cluster:
    return cluster_of(NEWEST)


@pytest.fixture(scope="module")
def scene(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    url = cluster.new_database()
    with Sql(url) as sql:
        log_statements(sql)
    folder: Path = tmp_path_factory.mktemp("counted")
    with open_office(folder, url) as office, an_inbox() as inbox, an_inbox() as refusing:
        yield set_up(office, inbox, refusing)


@pytest.fixture(scope="module")
def statements(scene: Scene, cluster: Cluster) -> Statements:
    return Statements(scene.office.sql, cluster.log)


def _counted(scene: Scene, statements: Statements, page: BrowserPage) -> int:
    """Once before, for what a process learns only once."""
    token = None if page.role is None else scene.person(page.role, "en").token
    with Person(scene.office.address, token) as person:
        person.see(page.path(scene), page.status)
        with statements.counted():
            person.see(page.path(scene), page.status)
    return statements.count


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_costs_a_handful_of_statements(
    scene: Scene, statements: Statements, page: BrowserPage
) -> None:
    assert 0 <= _counted(scene, statements, page) <= AT_MOST


def test_more_units_cost_no_more_statements(scene: Scene, statements: Statements) -> None:
    """After all the others, since it leaves the project with a thousand more."""
    before = [_counted(scene, statements, page) for page in PAGES]
    more = [full(code=f"Z-{number}") for number in range(1000)]
    assert put_array(scene.office.http, scene.project, more).status_code == 200
    after = [_counted(scene, statements, page) for page in PAGES]
    grown = [page.name for page, one, other in zip(PAGES, before, after, strict=True) if other > one]
    assert grown == []


def test_statements_are_counted_at_all(scene: Scene, statements: Statements) -> None:
    with statements.counted():
        scene.office.http.get("/readyz")
        scene.office.http.get(f"/v1/backoffice/projects/{scene.project.slug}")
    assert statements.count >= 1
