"""Units from a file: uploaded, its columns named, checked, brought in."""

import io
import re

import httpx
import pytest
import xlsxwriter  # type: ignore[import-untyped]

from tests.support.bodies import full
from tests.support.client import Project, Unit, put_array
from tests.support.import_files import (
    checked,
    chosen,
    commit,
    import_path,
    refused_rows,
    send_file,
    tiles,
    uploaded,
)
from tests.support.staff_client import People, Person

PRICES = "Code,Price (SAR)\r\n"


def test_a_file_is_uploaded_named_checked_and_brought_in(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [full(code="A-1", priceSar=100), full(code="A-2", priceSar=200)])
    text = PRICES + "A-1,150\r\nA-2,200\r\nA-3,300\r\n"
    address, page = checked(sales, project, text)
    assert tiles(page) == {"new": "0", "changed": "1", "unchanged": "1", "refused": "1"}
    assert Unit(http, project, "A-1").read()["priceSar"] == 100
    assert "Import 1 unit<" in page
    done = commit(sales, address)
    assert tiles(done) == {"new": "0", "changed": "1", "unchanged": "1", "refused": "1"}
    assert Unit(http, project, "A-1").read()["priceSar"] == 150


def test_the_same_file_again_changes_nothing(sales: Person, http: httpx.Client, project: Project) -> None:
    text = "Code,Type,Area,Price\r\nA-1,Villa,300,100\r\n"
    address, _ = checked(sales, project, text)
    commit(sales, address)
    etag = Unit(http, project, "A-1").etag
    _, page = checked(sales, project, text)
    assert tiles(page)["unchanged"] == "1"
    assert "There is nothing to import" in page
    assert "/commit" in page
    assert Unit(http, project, "A-1").etag == etag


def test_what_the_file_has_no_column_for_stays_as_it_is(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [full(code="A-1")])
    before = Unit(http, project, "A-1").read()
    address, _ = checked(sales, project, PRICES + "A-1,5\r\n")
    commit(sales, address)
    after = Unit(http, project, "A-1").read()
    assert {name for name in after if after[name] != before[name]} == {"priceSar", "updatedAt"}


def test_what_the_file_has_no_column_for_is_cleared_if_somebody_says_so(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [full(code="A-1")])
    text = "Code,Type,Area,Price\r\nA-1,Villa,300,100\r\n"
    address, page = checked(sales, project, text, absent="clear")
    assert "<del>" in page
    commit(sales, address)
    after = Unit(http, project, "A-1").read()
    assert (after["description"], after["images"], after["bedrooms"]) == (None, [], None)


def test_every_bad_row_is_told_with_its_row_column_and_reason(sales: Person, project: Project) -> None:
    rows = ["A-1,,x,-5", ",Villa,1,1", "A-1,Villa,1,1.234", "A-2,Villa,1,1", "A-2,Villa,1,1"]
    text = "\r\n".join(["Code,Type,Area,Price", *rows])
    _, page = checked(sales, project, text)
    assert refused_rows(page) == [
        ("2", "A-1", "Type", "empty", "This cannot be empty."),
        ("2", "A-1", "Area", "x", "This is not a number."),
        ("2", "A-1", "Price", "-5", "This must be at least 0."),
        ("3", "", "Code", "empty", "The row has no code."),
        ("4", "A-1", "Code", "A-1", "This code stands in row 2 already."),
        ("4", "A-1", "Price", "1.234", "This must have at most 2 decimals."),
        ("6", "A-2", "Code", "A-2", "This code stands in row 5 already."),
    ]


def test_before_and_after_of_a_changed_unit_are_shown(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    put_array(http, project, [full(code="A-1", priceSar=1_000_000.5)])
    _, page = checked(sales, project, PRICES + 'A-1,"1,200,000"\r\n')
    assert re.search(
        r"<dt>Price</dt><dd><del>SAR\s1,000,000\.50</del>.*<ins>SAR\s1,200,000</ins>", page, re.DOTALL
    )


def test_a_history_entry_names_the_member_of_staff(
    sales: Person, staff_http: httpx.Client, http: httpx.Client, project: Project
) -> None:
    address, _ = checked(sales, project, "Code,Type,Area,Price\r\nA-1,Villa,300,100\r\n")
    commit(sales, address)
    history = staff_http.get(f"/v1/backoffice/projects/{project.slug}/units/A-1/history").json()
    entry = next(iter(history.values()))[0]
    assert (entry["action"], entry["actor"]["kind"], entry["actor"]["id"]) == ("create", "staff", sales.email)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "Choose a file."),
        (b"\r\n\r\n", "There is nothing in the file."),
        (b"PK\x03\x04rubbish", "The file is damaged, or no XLSX workbook."),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "The file is protected by a password, or an old .xls"),
        (b'Code,Price\r\n"A-1,5\r\n', "A cell of the file never ends"),
    ],
    ids=["nothing", "empty", "damaged", "old", "endless"],
)
def test_a_file_that_cannot_be_read_is_refused_in_plain_words(
    sales: Person, project: Project, content: bytes, message: str
) -> None:
    answer = send_file(sales, project, content)
    assert answer.status_code == 422
    assert message in answer.text


def test_a_file_that_is_too_large_is_refused(sales: Person, project: Project) -> None:
    assert send_file(sales, project, bytes(33 * 1024**2)).status_code == 413


def test_columns_are_guessed_shown_and_changeable(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    address = uploaded(
        sales, project, 'Tower,رقم الوحدة,النوع,المساحة,السعر\r\nA,A-1,شقة,١٢٠٫٥,"١٬٢٠٠٬٠٠٠"\r\n'
    )
    page = sales.see(address)
    fields = chosen(page)
    assert [fields[f"column{at}"] for at in range(5)] == ["", "code", "type", "area_sqm", "price_sar"]
    assert "١٢٠٫٥" in page
    sales.done(f"{address}/check", {**fields, "column0": "description"})
    commit(sales, address)
    unit = Unit(http, project, "A-1").read()
    assert (unit["areaSqm"], unit["priceSar"], unit["description"]) == (120.5, 1_200_000, "A")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"column0": ""}, "Choose the column with the unit codes."),
        ({"column1": "code"}, "Another column is already used for this."),
        ({"absent": "clear"}, "This cannot be cleared"),
    ],
    ids=["no code", "twice", "cleared"],
)
def test_a_choice_that_cannot_work_is_told_beside_it(
    sales: Person, project: Project, changed: dict[str, str], message: str
) -> None:
    address = uploaded(sales, project, PRICES + "A-1,5\r\n")
    answer = sales.submit(f"{address}/check", {**chosen(sales.see(address)), **changed})
    assert answer.status_code == 422
    assert message in answer.text


def test_another_sheet_and_another_row_of_headings_can_be_chosen(
    sales: Person, http: httpx.Client, project: Project
) -> None:
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as made:
        made.add_worksheet("First").write_row(0, 0, ["Code", "Price"])
        second = made.add_worksheet("Second")
        for at, row in enumerate(
            [["Prices"], ["Code", "Type", "Area", "Price"], ["A-1", "Villa", 1.5, 2.25]]
        ):
            second.write_row(at, 0, row)
    address = send_file(sales, project, file.getvalue(), "units.xlsx").headers["location"]
    assert ">Second (3)<" in sales.see(address)
    page = sales.see(f"{address}?columns=1&sheet=1&heading=2")
    assert chosen(page)["column3"] == "price_sar"
    page = sales.done(f"{address}/check", chosen(page))
    assert tiles(page)["new"] == "1"
    commit(sales, address)
    assert Unit(http, project, "A-1").read()["areaSqm"] == 1.5


def test_a_form_full_of_nonsense_is_refused_and_no_fault_of_ours(sales: Person, project: Project) -> None:
    address = uploaded(sales, project, PRICES + "A-1,5\r\n")
    nonsense = {"sheet": "9", "heading": "-1", "column0": "colour", "column1": "code" * 99, "sign": "x"}
    assert sales.submit(f"{address}/check", nonsense).status_code == 422
    assert sales.look(f"{address}?columns&sheet=99&heading=x&from=x&show=y").status_code == 200


def test_a_file_is_seen_by_the_person_who_brought_it_alone(
    people: People, sales: Person, project: Project
) -> None:
    address = uploaded(sales, project, PRICES + "A-1,5\r\n")
    colleague = people.signed_in("sales")
    assert colleague.look(address).status_code == 404
    assert colleague.submit(f"{address}/commit").status_code == 404
    assert "units.csv" not in colleague.see(import_path(project))
    assert "units.csv" in sales.see(import_path(project))


def test_only_those_who_sell_may_import(viewer: Person, integrator: Person, project: Project) -> None:
    for person in (viewer, integrator):
        assert person.look(import_path(project)).status_code == 403
        assert send_file(person, project, b"Code\r\nA-1\r\n").status_code == 403


def test_an_unknown_file_and_an_unknown_project_are_not_there(sales: Person, project: Project) -> None:
    assert sales.look(import_path(project, "/00000000-0000-0000-0000-000000000000")).status_code == 404
    assert sales.look(import_path(project, "/x")).status_code == 422
    assert sales.look("/backoffice/projects/no-such-project/import").status_code == 404


def test_a_unit_that_looks_like_markup_is_just_a_name(sales: Person, project: Project) -> None:
    name = "<img src=x onerror=alert(1)>"
    text = f"Code,Type,Area,Price,{name}\r\n{name},{name},1,1,{name}\r\nA,{name},{name},1,\r\n"
    address, page = checked(sales, project, text)
    shown = page + sales.see(f"{address}?show=created") + sales.see(f"{address}?columns")
    assert "<img" not in shown
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown


def test_reasons_are_told_in_arabic_with_their_numbers(arab: Person, project: Project) -> None:
    _, page = checked(arab, project, "Code,Type,Area,Price\r\nA-1,Villa,1,1.234\r\nA-1,Villa,1,1\r\n")
    assert "الحد الأقصى لعدد المنازل العشرية: ٢." in page
    assert "ورد هذا الرمز من قبل في الصف ٢." in page


def test_the_pages_speak_arabic(arab: Person, project: Project) -> None:
    assert "استيراد" in arab.see(import_path(project))
    _, page = checked(arab, project, "رمز الوحدة,السعر\r\nA-1,x\r\n")
    assert "هذا ليس رقمًا" in page
