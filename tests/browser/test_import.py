"""A file is imported: its columns, its bad rows, what it will do, and then what it did."""

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.journeys import press
from tests.browser.office import Office
from tests.support.client import Project

HEAD = "Unit,Kind,Size,Price in SAR,Rooms\n"
GOOD = "A-101,apartment,120.5,975000,3\nB-101,villa,310,2500000,5\n"
BAD = "B-102,villa,310,a lot,5\nB-103,villa,-3,2500000,5\nB-101,villa,310,2500000,5\n"


def upload(page: Page, tower: Project, text: str) -> None:
    page.goto(f"/backoffice/projects/{tower.slug}/import")
    page.get_by_label("CSV or XLSX file").set_input_files(
        {"name": "units.csv", "mimeType": "text/csv", "buffer": text.encode()}
    )
    press(page, "Upload")


def choose_columns(page: Page) -> None:
    fields = ("code", "type", "area_sqm", "price_sar", "bedrooms")
    for heading, field in zip(HEAD.strip().split(","), fields, strict=True):
        page.get_by_label(heading, exact=True).select_option(field)
    press(page, "Check the file")


def test_bad_rows_are_told_and_the_good_ones_imported(page: Page, office: Office, tower: Project) -> None:
    upload(page, tower, HEAD + GOOD + BAD)
    choose_columns(page)
    for tile in ("1 new", "1 changed", "3 refused"):
        expect(page.get_by_role("link", name=tile)).to_be_visible()
    refused = page.locator("main")
    expect(refused).to_contain_text("This is not a number")
    expect(refused).to_contain_text("This must be greater than 0")
    expect(refused).to_contain_text("already in row 3")
    assert not office.unit(tower, "B-101").exists
    press(page, "Import 2 units")
    expect(page.get_by_role("heading", name="The file is imported")).to_be_visible()
    assert office.unit(tower, "B-101").read()["priceSar"] == 2_500_000
    assert office.unit(tower, "A-101").read()["priceSar"] == 975_000
    assert not office.unit(tower, "B-102").exists


@pytest.mark.slow
def test_what_is_exported_can_be_imported_and_changes_nothing(
    page: Page, tower: Project, tmp_path: Path
) -> None:
    page.goto(f"/backoffice/projects/{tower.slug}/import")
    with page.expect_download() as download:
        press(page, "Export as XLSX")
    exported = tmp_path / "units.xlsx"
    download.value.save_as(exported)
    page.get_by_label("CSV or XLSX file").set_input_files(exported)
    press(page, "Upload")
    press(page, "Check the file")
    expect(page.locator("main")).to_contain_text("All units already match the file.")


@pytest.mark.slow
def test_without_a_script_it_works_too_and_the_same_file_again_changes_nothing(
    open_window: Open, office: Office, tower: Project
) -> None:
    page = open_window(office.people.add("sales"), scripts=False).page
    upload(page, tower, HEAD + GOOD)
    choose_columns(page)
    press(page, "Import 2 units")
    expect(page.get_by_role("heading", name="The file is imported")).to_be_visible()
    upload(page, tower, HEAD + GOOD)
    choose_columns(page)
    expect(page.locator("main")).to_contain_text("All units already match the file.")
