"""A run through a file that takes a while: its progress, and its end in the middle."""

import re

import httpx

from tests.support.client import Project, Unit
from tests.support.import_files import checked, chosen, commit, tiles
from tests.support.sql import Sql
from tests.support.staff_client import Person

IMPORTING = "update import_file set stage = 'importing', beat_at ="


def test_a_run_whose_process_has_died_says_so_and_is_begun_again(
    sales: Person, sql: Sql, http: httpx.Client, project: Project
) -> None:
    text = "Code,Type,Area,Price\r\nA-1,Villa,300,100\r\n"
    address, _ = checked(sales, project, text)
    import_id = address.rpartition("/")[2]
    sql.execute(f"{IMPORTING} now() - interval '1 minute' where id = $1::uuid", import_id)
    assert "The import was interrupted" in sales.see(address)
    assert tiles(commit(sales, address))["new"] == "1"
    assert Unit(http, project, "A-1").read()["type"] == "Villa"


def test_a_run_that_is_alive_shows_how_far_it_is_and_is_not_begun_twice(
    sales: Person, sql: Sql, project: Project
) -> None:
    address, _ = checked(sales, project, "Code,Type,Area,Price\r\nA-1,Villa,300,100\r\n")
    import_id = address.rpartition("/")[2]
    sql.execute(f"{IMPORTING} now() where id = $1::uuid", import_id)
    page = sales.see(address)
    assert "0 of 1 rows" in page
    assert 'http-equiv="refresh"' in page
    assert "0 of 1 rows" in sales.done(f"{address}/commit", {"seen": "nothing"})
    assert "<html" not in sales.look(address, **{"hx-request": "true"}).text
    sql.execute("update import_file set stage = 'checked' where id = $1::uuid", import_id)
    assert sales.look(address, **{"hx-request": "true"}).headers["hx-refresh"] == "true"


def test_what_was_checked_again_since_it_was_seen_is_not_imported(sales: Person, project: Project) -> None:
    address, page = checked(sales, project, "Code,Type,Area,Price\r\nA-1,Villa,300,100\r\n")
    seen = re.search(r'name="seen" value="([^"]+)"', page)
    assert seen is not None
    columns = chosen(sales.see(f"{address}?columns"))
    sales.done(f"{address}/check", {**columns, "column3": ""})
    page = sales.done(f"{address}/commit", {"seen": seen[1]})
    assert "checked or imported in the meantime" in page
    assert tiles(page)["refused"] == "1"
