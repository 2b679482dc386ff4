"""Projects: listed, created, and their settings."""

import re
from html import unescape
from uuid import uuid4

import httpx
import pytest

from holdfast.domain.board import Counts
from holdfast.domain.project import suggested_slug
from holdfast.domain.status import Status
from holdfast.web.pages.backoffice.projects import status_bar
from tests.support.bodies import minimal
from tests.support.client import Project, put_array
from tests.support.sql import Sql
from tests.support.staff_client import Person, missing

NEW = "/backoffice/new-project"
ROW = "select name, hold_seconds, reservation_days from project where slug = $1"
EVIL = "<img onerror=alert(1)>"


def settings(project: Project) -> str:
    return f"/backoffice/projects/{project.slug}/settings"


def card_of(person: Person, project: Project) -> str:
    """Other tests have projects too."""
    page = person.see(f"/backoffice/projects?after={project.slug[:-1]}")
    (card,) = [one for one in page.split('<li class="card project">') if project.slug in one]
    return card


def test_a_project_is_listed_with_its_counts(
    viewer: Person, sales: Person, http: httpx.Client, project: Project, sql: Sql
) -> None:
    sql.execute("update project set name = $2 where slug = $1", project.slug, EVIL)
    put_array(http, project, [minimal(code="A-1"), minimal(code="A-2", status="unavailable")])
    card = card_of(viewer, project)
    link = f'href="/backoffice/projects/{project.slug}"'
    assert missing(card, link, "1 of 2", "&lt;img onerror=alert(1)&gt;") == []
    assert "<img" not in card
    assert re.findall(r'<rect class="(\w+)" x="([\d.]+)" width="([\d.]+)"', card) == [
        ("available", "0.0", "500.0"),
        ("unavailable", "500.0", "500.0"),
    ]
    assert f'href="{settings(project)}"' not in card
    assert f'href="{settings(project)}"' in card_of(sales, project)
    for after in ("", "NO!", "%F0%9F%98%80", "a" * 1000):
        assert NEW not in viewer.see(f"/backoffice/projects?after={after}")


def test_a_bar_is_as_long_as_it_is_with_whatever_it_is_made_of() -> None:
    counts = Counts(dict(zip(Status, (1, 0, 1, 2, 0), strict=True)))
    assert status_bar(counts) == [
        (Status.SOLD, 0, 500),
        (Status.RESERVED, 500, 250),
        (Status.AVAILABLE, 750, 250),
    ]
    assert status_bar(Counts(dict.fromkeys(Status, 0))) == []


def test_a_project_is_created_with_an_address_from_its_name_or_its_own(sales: Person, sql: Sql) -> None:
    tag = uuid4().hex[:8]
    for name, typed, slug in ((f"Palm Court {tag}", "", f"palm-court-{tag}"), ("الياسمين", f"own-{tag}", "")):
        answer = sales.submit(NEW, {"name": name, "slug": typed})
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/backoffice/projects/{slug or typed}"
        assert sql.row(ROW, slug or typed)["name"] == name


def test_a_form_with_a_fault_comes_back_as_filled_in(sales: Person, sql: Sql, project: Project) -> None:
    before = sql.value("select count(*) from project")
    for name, slug, told in (
        ("", "", "This field is required."),
        ("الياسمين", "", "Enter an address of Latin letters and digits."),
        ("Palm Court", "Palm Court", "slug"),
        ("x" * 201, "long-name", "This must have at most 200 characters."),
        ("Again", project.slug, f"There is already a project {project.slug}."),
    ):
        page = sales.refused(NEW, {"name": name, "slug": slug})
        assert missing(unescape(page), told, f'value="{name}"', f'value="{slug}"') == []
    assert sql.value("select count(*) from project") == before


def test_a_slug_is_suggested_from_what_is_latin() -> None:
    assert suggested_slug("Narjis Heights") == "narjis-heights"
    assert suggested_slug("  Tour d'Évry №2 ") == "tour-d-evry-no2"
    assert suggested_slug("x" * 300) == "x" * 100
    assert suggested_slug("الياسمين") == suggested_slug("A") == suggested_slug("--") == ""


def test_settings_are_saved_and_may_be_the_servers_own(sales: Person, project: Project, sql: Sql) -> None:
    page = sales.see(settings(project))
    own = (
        "If empty, the server's default applies: 5 minutes.",
        "If empty, the server's default applies: 14 days.",
    )
    assert missing(page, *own) == []
    fields = {"name": EVIL, "holdSeconds": "600", "reservationDays": "٧٫٥"}
    for _ in range(2):
        page = sales.done(settings(project), fields)
    assert missing(page, "Settings saved.", 'value="600"', 'value="7.5"', "&lt;img onerror") == []
    assert "<img" not in page
    assert sql.row(ROW, project.slug) == {"name": EVIL, "hold_seconds": 600.0, "reservation_days": 7.5}
    entries = "select count(*) from audit_entry where subject_id = $1 and action = 'settle'"
    assert sql.value(entries, project.id) == 1, "the same again is no change"
    sales.done(settings(project), {"name": "Renamed", "holdSeconds": "", "reservationDays": ""})
    assert sql.row(ROW, project.slug) == {"name": "Renamed", "hold_seconds": None, "reservation_days": None}


def test_a_wrong_setting_is_told_beside_its_field(sales: Person, project: Project, sql: Sql) -> None:
    for name, value, told in (
        ("name", "", "This must have at least 1 character."),
        ("holdSeconds", "soon", "This must be a number."),
        ("holdSeconds", "NaN", "This must be a number."),
        ("holdSeconds", "0", "This must be at least"),
        ("holdSeconds", "1e400", "This must be at most"),
        ("reservationDays", "3651", "This must be at most"),
        ("reservationDays", "-1", "This must be at least"),
    ):
        typed = {"name": "Another", "holdSeconds": "30", "reservationDays": "3", name: value}
        assert missing(sales.refused(settings(project), typed), told, f'value="{value}"') == []
    assert sql.row(ROW, project.slug)["name"] == project.name


def test_who_only_reads_sees_the_settings_without_fields(viewer: Person, project: Project) -> None:
    page = viewer.see(settings(project))
    assert "5 minutes" in page
    assert "<input id" not in page
    viewer.see("/backoffice/projects/no-such-project/settings", 404)
    viewer.see("/backoffice/projects/No%20Slug/settings", 422)


@pytest.mark.parametrize(
    ("role", "more"),
    [("admin", {"keys", "staff", "audit"}), ("integrator", {"keys"}), ("sales", set()), ("viewer", set())],
)
@pytest.mark.usefixtures("server")
def test_the_settings_lead_to_open_doors(request: pytest.FixtureRequest, role: str, more: set[str]) -> None:
    person: Person = request.getfixturevalue(role)
    main = person.see("/backoffice/settings").partition("<main")[2]
    doors = {part.split('"')[0].rsplit("/", 1)[1] for part in main.split('<a class="card" href="')[1:]}
    assert doors == {"webhooks", "deliveries", "projects", "seller", "account"} | more
