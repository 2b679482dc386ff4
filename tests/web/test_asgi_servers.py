"""The application runs on any ASGI server: one PUT, two pages and a live stream on uvicorn and hypercorn."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.client import integration_client
from tests.support.ports import free_port, wait_until_it_listens
from tests.support.projects import add_project
from tests.support.server import HOLDFAST, environment
from tests.support.sql import Sql

COMMANDS = {
    "uvicorn": ["uvicorn", "--factory", "holdfast.web.app:create_app", "--port", "{port}"],
    "hypercorn": ["hypercorn", "holdfast.web.app:create_app()", "--bind", "127.0.0.1:{port}"],
}
UNIT = {"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}


@contextmanager
def running(program: str, database_url: str, log: Path) -> Iterator[str]:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    settings = {"HOLDFAST_DATABASE_URL": database_url, "HOLDFAST_PUBLIC_URL": address}
    name, *arguments = (part.format(port=port) for part in COMMANDS[program])
    with log.open("w") as output:
        process = subprocess.Popen(
            [HOLDFAST.with_name(name), *arguments],
            stdout=output,
            stderr=output,
            env=environment(settings),
            cwd=log.parent,
        )
    try:
        wait_until_it_listens(process, port)
        yield address
    finally:
        process.terminate()
        process.wait(120)


@pytest.mark.parametrize("program", ["uvicorn", pytest.param("hypercorn", marks=pytest.mark.slow)])
def test_a_stock_server_serves_the_application(
    program: str, database_url: str, api_key: str, sql: Sql, tmp_path: Path
) -> None:
    slug = add_project(sql).slug
    with (
        running(program, database_url, tmp_path / "server.log") as address,
        integration_client(address, api_key) as http,
    ):
        put = http.put(f"/v1/integration/projects/{slug}/units/A%2F101", json=UNIT)
        assert (put.status_code, put.json()["code"]) == (201, "A/101")
        page = http.get(f"/p/{slug}")
        assert (page.status_code, "A/101" in page.text) == (200, True)
        assert "<form" in http.get("/backoffice/sign-in").text
        with http.stream("GET", f"/p/{slug}/live") as live:
            assert live.headers["content-type"].startswith("text/event-stream")
            assert next(live.iter_lines()).startswith("event: ")
