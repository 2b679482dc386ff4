"""A page costs a handful of statements, however much there is to show."""

from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.browser.pages import PAGES, BrowserPage
from tests.browser.scene import Scene, opened_scene
from tests.support.bodies import full
from tests.support.client import Project, put_array
from tests.support.clusters import NEWEST, Cluster
from tests.support.sql import Sql
from tests.support.staff_client import Person
from tests.support.statements import Statements, log_statements

AT_MOST = 12
"""Whoever is signed in, what failed, and what the page itself asks."""
TOLERATED = 2
"""Now and then a page notes who was there, or sums up what has happened."""
OF_A_PROJECT = ("", "?view=table", "/layout", "/figures", "/export.csv")

_asked: ContextVar[list[str] | None] = ContextVar("asked", default=None)
"""What the application asks the database for the requests of this thread, if that is of interest."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    def noted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(connection: asyncpg.Connection, text: str, *arguments: Any, **options: Any) -> Any:
            if (statements := _asked.get()) is not None:
                statements.append(text)
            return method(connection, text, *arguments, **options)

        return call

    for name in ("fetch", "fetchrow", "fetchval", "execute"):
        monkeypatch.setattr(asyncpg.Connection, name, noted(getattr(asyncpg.Connection, name)))
    statements: list[str] = []
    token = _asked.set(statements)
    yield statements
    _asked.reset(token)


def test_more_units_cost_no_more_statements(
    admin: Person, http: httpx.Client, project: Project, asked: list[str]
) -> None:
    pages = [f"/backoffice/projects/{project.slug}{rest}" for rest in OF_A_PROJECT]

    def counted(page: str) -> int:
        """Once before, for what a process learns only once."""
        admin.see(page)
        asked.clear()
        admin.see(page)
        return len(asked)

    counts: list[list[int]] = []
    for building in "AB":
        units = [full(code=f"{building}-{at}") for at in range(40)]
        assert put_array(http, project, units).status_code == 200
        counts.append([counted(page) for page in pages])
    before, after = counts
    assert [now - then for then, now in zip(before, after, strict=True) if now > then + TOLERATED] == []
    assert 1 <= min(before) <= max(before) <= AT_MOST


@pytest.fixture
def scene(module_postgres_url: str, tmp_path: Path) -> Iterator[Scene]:
    with Sql(module_postgres_url) as sql:
        log_statements(sql)
    with opened_scene(tmp_path, module_postgres_url) as opened:
        yield opened


@pytest.mark.slow
def test_every_page_costs_few_statements_and_more_units_no_more(
    scene: Scene, cluster_of: Callable[[int], Cluster]
) -> None:
    statements = Statements(scene.office.sql, cluster_of(NEWEST).log)

    def counted(page: BrowserPage[Scene]) -> int:
        """Once before, for what a process learns only once."""
        token = None if page.role is None else scene.person(page.role, "en").token
        with Person(scene.office.address, token) as person:
            person.see(page.path(scene), page.status)
            with statements.counted():
                person.see(page.path(scene), page.status)
        return statements.count

    before = {page.name: counted(page) for page in PAGES}
    assert max(before.values()) >= 1, "statements are counted at all"
    assert {name: count for name, count in before.items() if count > AT_MOST} == {}
    more = [full(code=f"Z-{number}") for number in range(1000)]
    assert put_array(scene.office.http, scene.project, more).status_code == 200
    assert [page.name for page in PAGES if counted(page) > before[page.name] + TOLERATED] == []
