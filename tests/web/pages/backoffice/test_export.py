"""Units as a file, which runs nothing where it is opened and changes nothing when it comes back."""

import csv
import io
import re
from typing import Any

import httpx
import pytest
from python_calamine import load_workbook

from tests.support import states
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, put_array
from tests.support.import_files import checked, chosen, send_file, tiles
from tests.support.sql import Sql
from tests.support.staff_client import Person

ODD = [
    "=1+1",
    "-5",
    "+966",
    "@home",
    "'=quoted",
    "''-twice",
    "<img onerror>",
    "وحدة ١",
    "007",
    "1.10",
    "٪",
    'a,b;c"d',
]


def path_of(project: Project, kind: str, query: str = "") -> str:
    return f"/backoffice/projects/{project.slug}/export.{kind}{query}"


def exported(person: Person, project: Project, kind: str, query: str = "") -> bytes:
    answer = person.look(path_of(project, kind, query))
    assert answer.status_code == 200, answer.text
    return answer.content


def table(content: bytes, kind: str) -> list[list[Any]]:
    if kind == "csv":
        return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    return load_workbook(io.BytesIO(content)).get_sheet_by_index(0).to_python()


def codes(content: bytes, kind: str = "csv") -> list[str]:
    return [row[0] for row in table(content, kind)[1:]]


def fill(http: httpx.Client, project: Project) -> None:
    bodies = [full(code=code, type=code, description=f"{code}\r\nand more ") for code in ODD]
    media = [
        {"url": "https://x.example/1,", "name": "=plan"},
        "https://x.example/2",
        {"url": "https://x.example"},
    ]
    put_array(
        http,
        project,
        [*bodies, minimal(code="bare"), full(code="media", images=media, files=["https://x/a,"])],
    )


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_an_export_that_is_imported_again_changes_nothing(
    sales: Person, arab: Person, http: httpx.Client, project: Project, kind: str
) -> None:
    fill(http, project)
    for person in (sales, arab):
        content = exported(person, project, kind)
        address = send_file(person, project, content, f"units.{kind}").headers["location"]
        page = person.done(f"{address}/check", {**chosen(person.see(address)), "absent": "clear"})
        assert re.findall(r'class="tile (\w+)"', page) == ["none", "none", "quiet", "none"]


def test_a_cell_that_a_program_would_run_is_escaped_in_csv(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    fill(http, project)
    for row in table(exported(sales, project, "csv"), "csv")[1:]:
        assert not [cell for cell in row if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_a_cell_that_a_program_would_run_is_text_in_a_workbook(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    fill(http, project)
    assert set(codes(exported(sales, project, "xlsx"), "xlsx")) >= {"=1+1", "-5", "+966", "@home"}


def test_numbers_are_numbers_and_times_are_utc(sales: Person, http: httpx.Client, project: Project) -> None:
    put_array(http, project, [full(code="A-1", priceSar=1_250_000.55, areaSqm=142.75, bedrooms=3)])
    heading, row = table(exported(sales, project, "csv"), "csv")
    said = dict(zip(heading, row, strict=True))
    assert (said["Price (SAR)"], said["Area (m²)"], said["Bedrooms"]) == ("1250000.55", "142.75", "3")
    unit = Unit(http, project, "A-1").read()
    assert (said["Ref"], said["Updated"], said["Status"]) == (unit["ref"], unit["updatedAt"], unit["status"])
    assert table(exported(sales, project, "xlsx"), "xlsx")[1][2:4] == [142.75, 1250000.55]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_an_export_has_the_units_of_the_statuses_asked_for(
    viewer: Person, sql: Sql, http: httpx.Client, project: Project, kind: str
) -> None:
    put_array(
        http, project, [minimal(code="A-1"), minimal(code="A-2", status="unavailable"), minimal(code="A-3")]
    )
    states.bring_to(sql, Unit(http, project, "A-3"), "sold")
    assert codes(exported(viewer, project, kind), kind) == ["A-1", "A-2", "A-3"]
    assert codes(exported(viewer, project, kind, "?status=sold"), kind) == ["A-3"]
    assert codes(exported(viewer, project, kind, "?status=sold&status=unavailable"), kind) == ["A-2", "A-3"]
    assert codes(exported(viewer, project, kind, "?status=lost"), kind) == ["A-1", "A-2", "A-3"]


def test_more_units_than_a_page_are_all_there_once(
    viewer: Person, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [minimal(code=f"A-{number:04}") for number in range(1234)])
    assert codes(exported(viewer, project, "csv")) == [f"A-{number:04}" for number in range(1234)]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_an_export_is_a_file_with_a_name_and_nobody_elses_business(
    viewer: Person, project: Project, kind: str
) -> None:
    headers = viewer.look(path_of(project, kind)).headers
    assert headers["content-disposition"] == f'attachment; filename="{project.slug}-units.{kind}"'
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"


def test_the_units_of_a_project_that_is_not_there_cannot_be_exported(viewer: Person) -> None:
    for kind in ("csv", "xlsx"):
        assert viewer.look(f"/backoffice/projects/no-such-project/export.{kind}").status_code == 404


def test_what_a_buyer_holds_is_named_and_left_alone(
    sales: Person, sql: Sql, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [full(code=code) for code in ("A-1", "A-2", "A-3")])
    for code, status in (("A-1", "held"), ("A-2", "reserved"), ("A-3", "sold")):
        states.bring_to(sql, Unit(http, project, code), status)
    text = exported(sales, project, "csv").decode("utf-8-sig")
    _, page = checked(sales, project, text)
    assert tiles(page) == {"new": "0", "changed": "0", "unchanged": "3", "refused": "0"}
