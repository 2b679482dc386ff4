"""The list of projects."""

import re

import httpx
import pytest

from holdfast.domain.board import Counts
from holdfast.domain.status import Status
from holdfast.web.pages.backoffice.projects import status_bar
from tests.support.bodies import minimal
from tests.support.client import Project, Unit
from tests.support.sql import Sql
from tests.support.staff_client import Person


def card_of(page: str, project: Project) -> str:
    (card,) = [one for one in page.split('<li class="card project">') if project.slug in one]
    return card


def last_page_with(person: Person, project: Project) -> str:
    """Other tests have projects too."""
    return person.see(f"/backoffice/projects?after={project.slug[:-1] or 'a'}")


def test_a_project_is_listed_with_its_counts(viewer: Person, http: httpx.Client, project: Project) -> None:
    Unit(http, project, "A-101").create(minimal())
    Unit(http, project, "A-102").create(minimal(status="unavailable"))
    card = card_of(last_page_with(viewer, project), project)
    assert f'href="/backoffice/projects/{project.slug}"' in card
    assert "1 of 2" in card
    assert re.findall(r'<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"', card) == [
        ("available", "0.0", "500.0"),
        ("unavailable", "500.0", "500.0"),
    ]


def test_only_those_who_sell_are_led_to_the_settings(viewer: Person, sales: Person, project: Project) -> None:
    settings = f'href="/backoffice/projects/{project.slug}/settings"'
    assert settings in last_page_with(sales, project)
    assert settings not in last_page_with(viewer, project)
    assert "/backoffice/new-project" not in viewer.see("/backoffice/projects")


def test_a_project_with_a_naughty_name_is_just_a_name(viewer: Person, project: Project, sql: Sql) -> None:
    sql.execute("update project set name = '<script>alert(1)</script>' where slug = $1", project.slug)
    card = card_of(last_page_with(viewer, project), project)
    assert "<script>" not in card
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in card


@pytest.mark.parametrize("after", ["", "NO!", "%F0%9F%98%80", "a" * 1000])
def test_any_cursor_shows_a_page(viewer: Person, after: str) -> None:
    viewer.see(f"/backoffice/projects?after={after}")


def test_a_bar_is_as_long_as_it_is_with_whatever_it_is_made_of() -> None:
    counts = Counts(dict(zip(Status, (1, 0, 1, 2, 0), strict=True)))
    assert status_bar(counts) == [
        (Status.SOLD, 0, 500),
        (Status.RESERVED, 500, 250),
        (Status.AVAILABLE, 750, 250),
    ]
    assert status_bar(Counts(dict.fromkeys(Status, 0))) == []
