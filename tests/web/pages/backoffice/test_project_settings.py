"""Projects: created, named, and how long holds and reservations last."""

from html import unescape
from uuid import uuid4

import pytest

from holdfast.domain.project import suggested_slug
from tests.support.client import Project
from tests.support.sql import Sql
from tests.support.staff_client import Person

NEW = "/backoffice/new-project"
ROW = "select name, hold_seconds, reservation_days from project where slug = $1"
SETTLED = "select count(*) from audit_entry where subject_id = $1 and action = 'settle'"


def settings(project: Project) -> str:
    return f"/backoffice/projects/{project.slug}/settings"


def test_a_project_is_created_with_the_address_that_follows_from_its_name(sales: Person, sql: Sql) -> None:
    own = uuid4().hex[:8]
    answer = sales.submit(NEW, {"name": f"Palm Court {own}", "slug": ""})
    assert answer.status_code == 303
    assert answer.headers["location"] == f"/backoffice/projects/palm-court-{own}"
    assert sql.row(ROW, f"palm-court-{own}")["name"] == f"Palm Court {own}"


def test_an_address_of_ones_own_is_kept(sales: Person, sql: Sql) -> None:
    slug = f"own-{uuid4().hex[:8]}"
    assert sales.submit(NEW, {"name": "الياسمين", "slug": slug}).status_code == 303
    assert sql.row(ROW, slug)["name"] == "الياسمين"


@pytest.mark.parametrize(
    ("name", "slug", "told"),
    [
        ("", "", "This field is required."),
        ("الياسمين", "", "Give it an address in Latin letters and digits."),
        ("Palm Court", "Palm Court", "slug"),
        ("x" * 201, "long-name", "This must have at most 200 characters."),
    ],
)
def test_a_form_with_a_fault_comes_back_as_it_was_filled_in(
    sales: Person, sql: Sql, name: str, slug: str, told: str
) -> None:
    before = sql.value("select count(*) from project")
    answer = sales.submit(NEW, {"name": name, "slug": slug})
    assert answer.status_code == 422
    assert told in unescape(answer.text)
    assert f'value="{name}"' in answer.text
    assert f'value="{slug}"' in answer.text
    assert sql.value("select count(*) from project") == before


def test_an_address_is_taken_once(sales: Person, project: Project) -> None:
    answer = sales.submit(NEW, {"name": "Again", "slug": project.slug})
    assert answer.status_code == 422
    assert f"There is already a project `{project.slug}`." in unescape(answer.text)


def test_the_settings_show_what_the_server_has(sales: Person, project: Project) -> None:
    page = sales.see(settings(project))
    assert "Empty: as the server has it, 5 minutes." in page
    assert "Empty: as the server has it, 14 days." in page


def test_settings_are_saved_and_an_empty_one_is_the_servers_own(
    sales: Person, project: Project, sql: Sql
) -> None:
    fields = {"name": "Renamed", "holdSeconds": "600", "reservationDays": "٧٫٥"}
    page = sales.done(settings(project), fields)
    assert "The settings are saved." in page
    assert 'value="600"' in page
    assert 'value="7.5"' in page
    assert sql.row(ROW, project.slug) == {"name": "Renamed", "hold_seconds": 600.0, "reservation_days": 7.5}
    sales.done(settings(project), {"name": "Renamed", "holdSeconds": "", "reservationDays": ""})
    assert sql.row(ROW, project.slug) == {"name": "Renamed", "hold_seconds": None, "reservation_days": None}


def test_the_same_again_changes_nothing(sales: Person, project: Project, sql: Sql) -> None:
    for _ in range(2):
        sales.done(settings(project), {"name": project.name, "holdSeconds": "60", "reservationDays": ""})
    assert sql.value(SETTLED, project.id) == 1


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("name", "", "This must have at least 1 character."),
        ("holdSeconds", "soon", "This must be a number."),
        ("holdSeconds", "NaN", "This must be a number."),
        ("holdSeconds", "0", "This must be at least"),
        ("holdSeconds", "1e400", "This must be at most"),
        ("reservationDays", "3651", "This must be at most"),
        ("reservationDays", "-1", "This must be at least"),
    ],
)
def test_a_wrong_setting_is_told_beside_its_field(
    sales: Person, project: Project, sql: Sql, name: str, value: str, told: str
) -> None:
    before = sql.row(ROW, project.slug)
    typed = {"name": "Another", "holdSeconds": "30", "reservationDays": "3", name: value}
    answer = sales.submit(settings(project), typed)
    assert answer.status_code == 422
    assert told in answer.text
    assert f'value="{value}"' in answer.text
    assert sql.row(ROW, project.slug) == before


def test_who_only_reads_sees_the_settings_and_changes_none(
    viewer: Person, project: Project, sql: Sql
) -> None:
    page = viewer.see(settings(project))
    assert "5 minutes" in page
    assert "<input id" not in page
    assert viewer.submit(settings(project), {"name": "Mine"}).status_code == 403
    assert viewer.look(NEW).status_code == 403
    assert sql.row(ROW, project.slug)["name"] == project.name


def test_an_unknown_project_is_not_there(sales: Person) -> None:
    assert sales.look("/backoffice/projects/no-such-project/settings").status_code == 404
    assert sales.look("/backoffice/projects/No%20Slug/settings").status_code == 422


def test_a_name_is_just_a_name(sales: Person, project: Project) -> None:
    page = sales.done(settings(project), {"name": "<img onerror=alert(1)>"})
    assert "<img" not in page
    assert "&lt;img onerror=alert(1)&gt;" in page


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Narjis Heights", "narjis-heights"),
        ("  Tour d'Évry №2 ", "tour-d-evry-no2"),
        ("الياسمين", ""),
        ("A", ""),
        ("x" * 300, "x" * 100),
        ("--", ""),
    ],
)
def test_a_slug_is_suggested_from_what_is_latin(name: str, slug: str) -> None:
    assert suggested_slug(name) == slug


@pytest.mark.parametrize(
    ("role", "doors"),
    [
        ("admin", {"keys", "webhooks", "deliveries", "projects", "staff", "audit", "account"}),
        ("integrator", {"keys", "webhooks", "deliveries", "projects", "account"}),
        ("sales", {"webhooks", "deliveries", "projects", "account"}),
        ("viewer", {"webhooks", "deliveries", "projects", "account"}),
    ],
)
def test_the_settings_open_the_doors_that_are_open(
    request: pytest.FixtureRequest, role: str, doors: set[str]
) -> None:
    person: Person = request.getfixturevalue(role)
    main = person.see("/backoffice/settings").partition("<main")[2]
    assert {
        part.split('"')[0].rsplit("/", 1)[1] for part in main.split('<a class="card" href="')[1:]
    } == doors
