"""The process that brings a file in is killed in the middle."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.import_files import checked, commit
from tests.support.projects import add_project
from tests.support.server import RunningServer, serving
from tests.support.sql import Sql
from tests.support.staff_client import People, Person

ROWS = 12_000
PATIENCE_SECONDS = 60
STORED = "select coalesce(sum(rows_counted), 0) from import_result where stored"
CREATED = "select count(*) from audit_entry where action = 'create' and actor_kind = 'staff'"


@pytest.fixture
def server(tmp_path: Path, postgres_url: str) -> Iterator[RunningServer]:
    with serving(tmp_path, {"HOLDFAST_DATABASE_URL": postgres_url}, "--processes", "2") as running:
        yield running


@pytest.fixture
def sql(postgres_url: str) -> Iterator[Sql]:
    with Sql(postgres_url) as connection:
        yield connection


def kill_web_processes(server: RunningServer) -> None:
    for child in psutil.Process(server.process.pid).children():
        if "holdfast.server.web" in child.cmdline():
            child.kill()


def commit_and_be_hung_up_on(person: Person, address: str) -> None:
    with suppress(httpx.TransportError):
        commit(person, address)


def page_with(person: Person, address: str, *texts: str) -> str:
    """The page, once it says one of these; while the server starts again nobody answers."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            page = person.see(address)
        except httpx.TransportError:
            continue
        if any(text in page for text in texts):
            return page
    raise AssertionError(f"It never said {texts}.")


def test_an_import_that_was_killed_says_so_and_is_begun_again_without_doing_anything_twice(
    server: RunningServer, sql: Sql
) -> None:
    project = add_project(sql)
    people = People(sql, server.address)
    person = people.signed_in("sales")
    rows = "".join(f"A-{number},Villa,100,{number}\r\n" for number in range(ROWS))
    address, _ = checked(person, project, "Code,Type,Area,Price\r\n" + rows)
    page_with(person, address, "What the import will do")
    # Whoever sends it waits for a moment, in which a small file would be done.
    sending = threading.Thread(target=commit_and_be_hung_up_on, args=(person, address))
    sending.start()
    while sql.value(STORED) == 0:
        pass
    kill_web_processes(server)
    sending.join()
    page = page_with(person, address, "The import was interrupted")
    done = re.search(r"([\d,]+) of 12,000 rows", page)
    assert done is not None
    assert 0 < int(done[1].replace(",", "")) < ROWS
    commit(person, address)
    page_with(person, address, "The file is imported")
    assert sql.value(STORED) == ROWS
    assert sql.value("select count(*) from unit") == sql.value(CREATED) == ROWS
    people.leave()
