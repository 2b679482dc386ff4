"""Units from a file: uploaded, its columns named, checked, brought in. And units as a file."""

import csv
import io
import re
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import httpx
import pytest
import xlsxwriter  # type: ignore[import-untyped]
from python_calamine import load_workbook

from holdfast.domain.imports import FIELDS
from holdfast.web.pages.backoffice.imports import EXPORTED_AT_ONCE
from tests.support import import_files as files
from tests.support.backoffice import Desk
from tests.support.bodies import full, minimal
from tests.support.client import Project, Unit, put_array
from tests.support.sql import Sql
from tests.support.staff_client import People, Person, missing

PRICES = "Code,Price (SAR)\r\n"
VILLA = "Code,Type,Area,Price\r\nA-1,Villa,300,100\r\n"
EVIL = "<img src=x onerror=alert(1)>"
ODD = (
    "=1+1", "-5", "+966", "@home", "'=quoted", "''-twice", EVIL, "وحدة ١", "007", "1.10", "٪", 'a,b;c"d',
)  # fmt: skip
MEDIA = [
    {"url": "https://x.example/1,", "name": "=plan"},
    "https://x.example/2",
    {"url": "https://x.example"},
]
STAGE = (
    "update import_file set stage = $2, beat_at = now() - $3 * interval '1 minute' where id = $1::text::uuid"
)


def test_a_file_is_uploaded_named_checked_and_brought_in(
    sales: Person, desk: Desk, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [full(code="A-1", priceSar=1_000_000.5), full(code="A-2", priceSar=200)])
    unit = Unit(http, project, "A-1")
    before = unit.read()
    text = PRICES + 'A-1,"1,200,000"\r\nA-2,200\r\nA-3,300\r\n'
    address, page = files.checked(sales, project, text)
    counts = {"new": "0", "changed": "1", "unchanged": "1", "refused": "1"}
    assert files.tiles(page) == counts
    change = r"<dt>Price</dt><dd><del>SAR\s1,000,000\.50</del>.*<ins>SAR\s1,200,000</ins>"
    assert re.search(change, sales.see(f"{address}?show=replaced"), re.DOTALL)
    assert "Import 1 unit<" in page
    assert unit.read() == before
    assert files.tiles(files.commit(sales, address)) == counts
    after = unit.read()
    assert {name for name in after if after[name] != before[name]} == {"priceSar", "updatedAt"}
    entry = desk.last_entry(unit)
    assert (entry["action"], entry["actor"]["kind"], entry["actor"]["id"]) == ("change", "staff", sales.email)
    etag = unit.etag
    _, page = files.checked(sales, project, text.removesuffix("A-3,300\r\n"))
    assert files.tiles(page)["unchanged"] == "2"
    assert missing(page, "There is nothing to import", "/commit") == []
    assert unit.etag == etag


def test_what_has_no_column_is_cleared_if_chosen(sales: Person, http: httpx.Client, project: Project) -> None:
    put_array(http, project, [full(code="A-1")])
    address, page = files.checked(sales, project, VILLA, absent="clear")
    assert "<del>" in page
    files.commit(sales, address)
    after = Unit(http, project, "A-1").read()
    assert (after["description"], after["images"], after["bedrooms"]) == (None, [], None)


def test_every_bad_row_is_told_with_its_reason(sales: Person, arab: Person, project: Project) -> None:
    rows = ["A-1,,x,-5", ",Villa,1,1", "A-1,Villa,1,1.234", "A-2,Villa,1,1", "A-2,Villa,1,1"]
    text = "\r\n".join(["Code,Type,Area,Price", *rows])
    _, page = files.checked(sales, project, text)
    assert files.refused_rows(page) == [
        ("2", "A-1", "Type", "empty", "This cannot be empty."),
        ("2", "A-1", "Area", "x", "This is not a number."),
        ("2", "A-1", "Price", "-5", "This must be at least 0."),
        ("3", "", "Code", "empty", "The row has no code."),
        ("4", "A-1", "Code", "A-1", "This code is already in row 2."),
        ("4", "A-1", "Price", "1.234", "This must have at most 2 decimals."),
        ("6", "A-2", "Code", "A-2", "This code is already in row 5."),
    ]
    assert "استيراد" in arab.see(files.import_path(project))
    _, page = files.checked(arab, project, text)
    told = ("هذا ليس رقمًا", "الحد الأقصى لعدد المنازل العشرية: ٢.", "ورد هذا الرمز من قبل في الصف ٢.")
    assert missing(page, *told) == []


def test_a_file_that_cannot_be_read_is_refused_in_plain_words(sales: Person, project: Project) -> None:
    for content, message in (
        (b"", "Choose a file."),
        (b"PK\x03\x04rubbish", "The file is damaged or not an XLSX workbook."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "The file is password-protected or in the old .xls format"),
        (b'Code,Price\r\n"A-1,5\r\n', "A quoted cell of the file is never closed"),
    ):
        answer = files.send_file(sales, project, content)
        assert (answer.status_code, message in answer.text) == (422, True)
    assert files.send_file(sales, project, bytes(33 * 1024**2)).status_code == 413, "it is too large"


def test_columns_are_guessed_and_changeable(sales: Person, http: httpx.Client, project: Project) -> None:
    heading = f"{EVIL},رقم الوحدة,النوع,المساحة,السعر"
    rows = [f'A,A-1,{EVIL},١٢٠٫٥,"١٬٢٠٠٬٠٠٠"', f"A,{EVIL},{EVIL},{EVIL},1"]
    address = files.uploaded(sales, project, "\r\n".join([heading, *rows]))
    page = sales.see(address)
    fields = files.chosen(page)
    assert [fields[f"column{at}"] for at in range(5)] == ["", "code", "type", "area_sqm", "price_sar"]
    assert "١٢٠٫٥" in page
    page += sales.done(f"{address}/check", {**fields, "column0": "description"})
    page += sales.see(f"{address}?show=created") + sales.see(f"{address}?columns")
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
    files.commit(sales, address)
    unit = Unit(http, project, "A-1").read()
    assert (unit["areaSqm"], unit["priceSar"], unit["description"]) == (120.5, 1_200_000, "A")


def test_a_choice_that_cannot_work_is_told_beside_it(sales: Person, project: Project) -> None:
    address = files.uploaded(sales, project, PRICES + "A-1,5\r\n")
    fields = files.chosen(sales.see(address))
    for changed, message in (
        ({"column0": ""}, "Choose the column with the unit codes."),
        ({"column1": "code"}, "Another column is already imported as this field."),
        ({"absent": "clear"}, "This field cannot be cleared"),
    ):
        assert message in sales.refused(f"{address}/check", {**fields, **changed})
    nonsense = {"sheet": "9", "heading": "-1", "column0": "colour", "column1": "code" * 99, "sign": "x"}
    sales.refused(f"{address}/check", nonsense)
    sales.see(f"{address}?columns&sheet=99&heading=x&from=x&show=y")


def test_another_sheet_and_row_can_be_chosen(sales: Person, http: httpx.Client, project: Project) -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as made:
        made.add_worksheet("First").write_row(0, 0, ["Code", "Price"])
        second = made.add_worksheet("Second")
        rows = [["Prices"], ["Code", "Type", "Area", "Price"], ["A-1", "Villa", 1.5, 2.25]]
        for at, row in enumerate(rows):
            second.write_row(at, 0, row)
    address = files.send_file(sales, project, file.getvalue(), "units.xlsx").headers["location"]
    assert ">Second (3)<" in sales.see(address)
    page = sales.see(f"{address}?columns=1&sheet=1&heading=2")
    assert files.chosen(page)["column3"] == "price_sar"
    assert files.tiles(sales.done(f"{address}/check", files.chosen(page)))["new"] == "1"
    files.commit(sales, address)
    assert Unit(http, project, "A-1").read()["areaSqm"] == 1.5


def test_a_file_is_seen_by_its_owner_alone(people: People, sales: Person, project: Project) -> None:
    address = files.uploaded(sales, project, PRICES + "A-1,5\r\n")
    colleague = people.signed_in("sales")
    colleague.see(address, 404)
    colleague.refused(f"{address}/commit", status=404)
    assert "units.csv" not in colleague.see(files.import_path(project))
    assert "units.csv" in sales.see(files.import_path(project))
    sales.see(files.import_path(project, f"/{UUID(int=1)}"), 404)
    sales.see(files.import_path(project, "/x"), 422)
    sales.see("/backoffice/projects/no-such-project/import", 404)


def test_a_dead_run_is_begun_again(sales: Person, sql: Sql, http: httpx.Client, project: Project) -> None:
    address, _ = files.checked(sales, project, VILLA)
    import_id = address.rpartition("/")[2]
    sql.execute(STAGE, import_id, "importing", -10)
    assert missing(sales.see(address), "0 of 1 rows", 'http-equiv="refresh"') == []
    assert "0 of 1 rows" in sales.done(f"{address}/commit", {"seen": "nothing"}), "it is not begun twice"
    assert "<html" not in sales.look(address, **{"hx-request": "true"}).text
    sql.execute(STAGE, import_id, "checked", 0)
    assert sales.look(address, **{"hx-request": "true"}).headers["hx-refresh"] == "true"
    sql.execute(STAGE, import_id, "importing", 1)
    assert "The import was interrupted" in sales.see(address)
    assert files.tiles(files.commit(sales, address))["new"] == "1"
    assert Unit(http, project, "A-1").read()["type"] == "Villa"


def test_what_was_checked_again_since_it_was_seen_is_not_imported(sales: Person, project: Project) -> None:
    address, page = files.checked(sales, project, VILLA)
    seen = page.split('name="seen" value="')[1].split('"')[0]
    columns = files.chosen(sales.see(f"{address}?columns"))
    sales.done(f"{address}/check", {**columns, "column3": ""})
    page = sales.done(f"{address}/commit", {"seen": seen})
    assert "checked or imported in the meantime" in page
    assert files.tiles(page)["refused"] == "1"


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_the_template_is_imported_as_it_is(kind: str, sales: Person, arab: Person, project: Project) -> None:
    for person in (sales, arab):
        content = exported(person, project, kind, name="template")
        address = urlsplit(files.send_file(person, project, content).headers["location"]).path
        fields = files.chosen(person.see(address))
        assert [name for field, name in fields.items() if field.startswith("column")] == list(FIELDS)
        page = person.done(f"{address}/check", fields)
        assert re.findall(r"<strong>([\d٠-٩]+)</strong>", page)[:4] in (list("2000"), list("٢٠٠٠"))


def test_refused_rows_are_a_file_that_can_be_mended_and_imported(sales: Person, project: Project) -> None:
    assert sales.look(files.import_path(project, f"/{uuid4()}/refused.csv")).status_code == 404
    workbook = io.BytesIO()
    with xlsxwriter.Workbook(workbook, {"strings_to_formulas": False}) as book:
        sheet = book.add_worksheet()
        rows = (
            ["Code", "Type", "Area", "Price", "Internal notes", "Status"],
            ["A-1", "=1+1", 10.5, -5, "=cmd", ""],
            ["A-2", "Villa", 300, 100],
            ["A-3", "Villa", 300, 100, "", "held"],
        )  # fmt: skip
        for at, row in enumerate(rows):
            sheet.write_row(at, 0, row)
    sent = files.send_file(sales, project, workbook.getvalue(), "units.xlsx")
    address = urlsplit(sent.headers["location"]).path
    assert sales.look(f"{address}/refused.csv").status_code == 404, "it is not checked yet"
    fields = files.chosen(sales.see(address))
    assert fields["column4"] == "", "buyers do not read notes"
    page = sales.done(f"{address}/check", fields)
    assert "`" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    for _ in range(2):
        assert f'href="{address}/refused.csv"' in page
        answer = sales.look(f"{address}/refused.csv")
        assert answer.headers["content-disposition"].startswith("attachment")
        heading, first, last = table(answer.content)
        assert heading == [*rows[0], "Row", "Reason"]
        assert first == [
            "A-1", "'=1+1", "10.5", "'-5", "'=cmd", "", "2", "Price: This must be at least 0.",
        ]  # fmt: skip
        assert (last[:7], "held" in last[7]) == (["A-3", "Villa", "300", "100", "", "held", "4"], True)
        page = files.commit(sales, address) if "/commit" in page else page
    mended = answer.content.decode("utf-8-sig").replace("'-5", "'5")
    address, page = files.checked(sales, project, mended)
    again, left = table(sales.look(f"{address}/refused.csv").content)
    assert (again, left[:7]) == (heading, ["A-3", "Villa", "300", "100", "", "held", "3"])
    _, page = files.checked(sales, project, mended.replace("held", "available"))
    assert files.tiles(page) == {"new": "2", "changed": "0", "unchanged": "0", "refused": "0"}


def test_the_reason_of_a_refused_row_names_no_column_without_a_heading(
    sales: Person, project: Project
) -> None:
    address, _ = files.checked(sales, project, "Code,Type,Area,\r\nA-1,Villa,300,-5\r\n", column3="price_sar")
    _, row = table(sales.look(f"{address}/refused.csv").content)
    assert row == ["A-1", "Villa", "300", "'-5", "2", "This must be at least 0."]


@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_a_project_that_does_not_exist_has_no_template(kind: str, sales: Person) -> None:
    assert sales.look(f"/backoffice/projects/no-such-project/template.{kind}").status_code == 404


def exported(person: Person, project: Project, kind: str, query: str = "", name: str = "units") -> bytes:
    path = "template" if name == "template" else "export"
    answer = person.look(f"/backoffice/projects/{project.slug}/{path}.{kind}{query}")
    assert answer.status_code == 200, answer.text
    headers = answer.headers
    assert headers["content-disposition"] == f'attachment; filename="{project.slug}-{name}.{kind}"'
    assert (headers["cache-control"], headers["x-content-type-options"]) == ("no-store", "nosniff")
    return answer.content


def table(content: bytes, kind: str = "csv") -> list[list[Any]]:
    if kind == "csv":
        return list(csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")))
    return load_workbook(io.BytesIO(content)).get_sheet_by_index(0).to_python()


@pytest.mark.parametrize(("kind", "role"), [("csv", "sales"), ("xlsx", "arab")])
def test_an_export_runs_nothing_where_it_is_opened_and_changes_nothing_when_it_comes_back(
    request: pytest.FixtureRequest, desk: Desk, http: httpx.Client, project: Project, kind: str, role: str
) -> None:
    person: Person = request.getfixturevalue(role)
    odd = [full(code=code, type=code, description=f"{code}\r\nand more ") for code in ODD]
    media = full(code="media", images=MEDIA, files=["https://x/a,"])
    put_array(http, project, [*odd, media, minimal(code="bare"), full(code="held"), full(code="sold")])
    desk.held(Unit(http, project, "held"))
    desk.sold(Unit(http, project, "sold"))
    content = exported(person, project, kind)
    rows = table(content, kind)[1:]
    if kind == "csv":
        starts = ("=", "+", "-", "@", "\t", "\r")
        assert not [cell for row in rows for cell in row if cell.startswith(starts)]
    else:
        assert {row[0] for row in rows} >= {"=1+1", "-5", "+966", "@home"}
    address = files.send_file(person, project, content, f"units.{kind}").headers["location"]
    page = person.done(f"{address}/check", {**files.chosen(person.see(address)), "absent": "clear"})
    assert re.findall(r'class="tile (\w+)"', page) == ["none", "none", "quiet", "none"]


def test_numbers_are_numbers_and_times_are_utc(sales: Person, http: httpx.Client, project: Project) -> None:
    put_array(http, project, [full(code="A-1", priceSar=1_250_000.55, areaSqm=142.75, bedrooms=3)])
    heading, row = table(exported(sales, project, "csv"))
    said = dict(zip(heading, row, strict=True))
    assert (said["Price (SAR)"], said["Area (m²)"], said["Bedrooms"]) == ("1250000.55", "142.75", "3")
    unit = Unit(http, project, "A-1").read()
    assert (said["Ref"], said["Updated"], said["Status"]) == (unit["ref"], unit["updatedAt"], unit["status"])
    assert table(exported(sales, project, "xlsx"), "xlsx")[1][2:4] == [142.75, 1250000.55]


def test_an_export_has_the_units_of_the_statuses_asked_for_all_of_them_once(
    viewer: Person, desk: Desk, http: httpx.Client, project: Project
) -> None:
    codes = [f"A-{number:04}" for number in range(EXPORTED_AT_ONCE + 2)]
    units = [minimal(code=code) for code in codes[2:]]
    put_array(http, project, [minimal(code=codes[0], status="unavailable"), full(code=codes[1]), *units])
    desk.held(Unit(http, project, codes[1]))

    def found(query: str) -> list[str]:
        return [row[0] for row in table(exported(viewer, project, "csv", query))[1:]]

    assert found("") == found("?status=lost") == codes
    assert found("?status=held") == codes[1:2]
    assert found("?status=held&status=unavailable") == codes[:2]
    for kind in ("csv", "xlsx"):
        viewer.see(f"/backoffice/projects/no-such-project/export.{kind}", 404)
