"""The application runs on any ASGI server: one PUT, two pages and a live stream on uvicorn and hypercorn."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.client import NO_TLS
from tests.support.ports import free_port, wait_until_it_listens
from tests.support.projects import add_project
from tests.support.server import STOP_SECONDS, WEBHOOKS
from tests.support.sql import Sql

BIN = Path(sys.executable).parent
UNIT = {"type": "apartment", "areaSqm": 120.5, "priceSar": 950000}


def command(server: str, port: int) -> list[str]:
    if server == "uvicorn":
        return ["uvicorn", "--factory", "holdfast.web.app:create_app", "--port", str(port)]
    return ["hypercorn", "holdfast.web.app:create_app()", "--bind", f"127.0.0.1:{port}"]


@contextmanager
def running(server: str, database_url: str, log: Path) -> Iterator[str]:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    named = {
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_ENCRYPTION_KEYS": WEBHOOKS["HOLDFAST_ENCRYPTION_KEYS"],
        "HOLDFAST_PUBLIC_URL": address,
    }
    outside = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    name, *arguments = command(server, port)
    with log.open("w") as output:
        process = subprocess.Popen(
            [BIN / name, *arguments], stdout=output, stderr=output, env={**outside, **named}, cwd=log.parent
        )
    try:
        wait_until_it_listens(process, port)
        yield address
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)


@pytest.mark.parametrize("server", ["uvicorn", "hypercorn"])
def test_a_stock_server_serves_the_application(
    server: str, database_url: str, api_key: str, sql: Sql, tmp_path: Path
) -> None:
    slug = add_project(sql).slug
    with (
        running(server, database_url, tmp_path / "server.log") as address,
        httpx.Client(base_url=address, verify=NO_TLS, timeout=30) as http,
    ):
        put = http.put(
            f"/v1/integration/projects/{slug}/units/A%2F101",
            json=UNIT,
            headers={"Authorization": f"Bearer {api_key}"},
        )
        assert (put.status_code, put.json()["code"]) == (201, "A/101")
        page = http.get(f"/p/{slug}")
        assert (page.status_code, "A/101" in page.text) == (200, True)
        assert "<form" in http.get("/backoffice/sign-in").text
        with http.stream("GET", f"/p/{slug}/live") as live:
            assert live.headers["content-type"].startswith("text/event-stream")
            assert next(live.iter_lines()).startswith("event: ")
