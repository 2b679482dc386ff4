"""`holdfast serve` and `holdfast work`: what they print, and what they are refused for."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Callable
from functools import partial
from html import unescape
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from holdfast.server import prepare
from holdfast.storage import schema
from holdfast.storage.database import translate_errors
from tests.docs.documents import ROOT, block_beginning
from tests.support.clusters import NEWEST, Cluster
from tests.support.commands import finish_process, refused, run_for_json
from tests.support.processes import stop_postgres
from tests.support.server import (
    HOLDFAST,
    PATIENCE_SECONDS,
    READY,
    RunningServer,
    environment,
    started,
    wait_until,
)
from tests.support.server import start as start_server
from tests.support.sql import Sql, blank_database, with_database
from tests.support.staff_client import Person

PASSWORD = "a horse of lead"
SERVE = ("serve", "--port", "0")
QUICK_START = ROOT / "docs" / "quick-start.md"
ADDRESS = "http://127.0.0.1:8000"


def output_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def start_for_json(settings: dict[str, str], *arguments: str) -> dict[str, Any]:
    with started(settings, *SERVE, "--json", *arguments) as process:
        printed: dict[str, Any] = json.loads(output_of(process).readline())
    return printed


@pytest.mark.slow
def test_without_staff_it_offers_a_link_that_makes_the_first_admin_once(settings: dict[str, str]) -> None:
    first = start_for_json(settings)
    assert set(first) == {"url", "setupUrl"}
    assert first["setupUrl"].startswith(f"{first['url']}/backoffice/set-up/")
    fields = {"email": "boss@example.com", "name": "The Boss", "password": PASSWORD, "again": PASSWORD}
    with started(settings, *SERVE) as process:
        address = output_of(process).readline().removeprefix(READY).strip()
        path = next(line for line in output_of(process) if "/set-up/" in line).strip().removeprefix(address)
        assert path.rpartition("/")[2] != first["setupUrl"].rpartition("/")[2]
        with Person(address) as newcomer:
            assert "Welcome to Holdfast" in newcomer.see(path)
            wrong = newcomer.submit(path, {**fields, "email": "nobody"}, on=path)
            assert (wrong.status_code, 'value="The Boss"' in wrong.text) == (422, True)
            assert newcomer.submit(path, fields, on=path).status_code == 303
            assert "boss@example.com" in newcomer.see("/backoffice/account")
            # And whoever follows the first page has a unit.
            (commands,) = re.findall(r"<pre><code>(.*?)</code></pre>", newcomer.see("/"), re.DOTALL)
        pasted = unescape(commands).replace("holdfast ", f"{HOLDFAST} ")
        done = subprocess.run(["bash", "-euc", pasted], env=environment(settings), capture_output=True)
        assert json.loads(done.stdout.splitlines()[-1])["status"] == "available", done
        with Person(address) as latecomer:
            latecomer.see(path, 404)
            again = latecomer.submit(path, {**fields, "email": "thief@example.com"}, on=path)
            assert again.status_code == 404
    (person,) = run_for_json(settings, "staff", "list")["staff"]
    assert (person["email"], person["role"]) == ("boss@example.com", "admin")
    assert set(start_for_json(settings)) == {"url"}


@pytest.mark.slow
def test_the_demo_prints_a_sign_in_and_a_key_that_are_new_at_each_start_and_a_line_to_paste(
    settings: dict[str, str],
) -> None:
    with started(settings, *SERVE, "--demo") as process:
        printed = ""
        while "Ctrl-C" not in printed:
            printed += output_of(process).readline()
        address, to_paste = printed.split()[4], [line for line in printed.splitlines() if line[:1].islower()]
        assert [line.split()[0] for line in to_paste] == ["export", "curl", "curl"]
        # Whoever then goes on with the quick start meets nothing of this.
        first_put = block_beginning(QUICK_START, "bash", "curl -i -X PUT").replace(ADDRESS, address)
        for command in (*to_paste[1:], first_put):
            quiet = f"{command.strip()} --silent --output /dev/null --write-out '%{{http_code}}'"
            pasted = f"{to_paste[0]}\n{quiet}"
            assert subprocess.check_output(pasted, shell=True, text=True).endswith("201")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
    second = start_for_json(settings, "--demo")
    assert set(second) == {"url", "key", "signIn", "project", "receiver"}
    assert set(second["signIn"]) == {"url", "email", "password"}
    assert second["signIn"]["url"] == f"{second['url']}/backoffice"
    assert second["signIn"]["email"] == "demo@holdfast.example"
    assert second["signIn"]["email"] in printed
    assert second["signIn"]["password"] not in printed
    assert second["key"] not in printed
    assert re.search(r"hfk_\w+", printed)
    keys = sorted(run_for_json(settings, "key", "list")["keys"], key=lambda key: str(key["createdAt"]))
    assert [key["revokedAt"] is None for key in keys] == [False, True]
    (person,) = run_for_json(settings, "staff", "list")["staff"]
    assert (person["email"], person["role"], person["setUp"]) == ("demo@holdfast.example", "admin", True)


def test_without_migrating_it_serves_a_schema_of_its_range_and_ctrl_c_says_that_it_stopped(
    settings: dict[str, str], postgres_url: str
) -> None:
    with Sql(postgres_url) as sql:
        sql.execute("update alembic_version set version_num = $1", f"{schema.HEAD}.1")
        try:
            with started(settings, *SERVE, "--no-migrate") as process:
                address = output_of(process).readline().removeprefix(READY).strip()
                assert httpx.get(f"{address}/readyz", trust_env=False).status_code == 200
                process.send_signal(signal.SIGINT)
                assert process.wait(PATIENCE_SECONDS) == 0
                assert process.stderr is not None
                assert process.stderr.read().splitlines()[-1] == "Holdfast has stopped."
            assert sql.value("select version_num from alembic_version") == f"{schema.HEAD}.1"
        finally:
            sql.execute("update alembic_version set version_num = $1", schema.HEAD)


ALL_OF_IT = """
    select to_jsonb(installation) as installation, (select count(*) from project) as projects,
        (select count(*) from api_key) as keys, (select count(*) from staff) as staff,
        (select count(*) from endpoint) as endpoints, (select count(*) from setup_link) as links
    from installation
"""
FIRST_OF_AN_OPERATOR = [
    ("staff", "add", "boss@example.com", "--role", "admin"),
    ("project", "add", "narjis-heights", "--name", "Not the demo's"),
    ("key", "add", "--name", "The ERP"),
    ("endpoint", "add", "http://127.0.0.1:9/hook"),
]


@pytest.mark.parametrize(
    "command",
    [
        FIRST_OF_AN_OPERATOR[0],
        *(pytest.param(one, marks=pytest.mark.slow) for one in FIRST_OF_AN_OPERATOR[1:]),
    ],
    ids=lambda command: command[0],
)
def test_the_demo_leaves_a_database_alone_that_it_has_not_filled(
    settings: dict[str, str], postgres_url: str, command: tuple[str, ...]
) -> None:
    run_for_json(settings, *command)
    with Sql(postgres_url) as sql:
        before = sql.row(ALL_OF_IT)
        told = refused(finish_process(settings, *SERVE, "--demo"), 2)
        assert sql.row(ALL_OF_IT) == before
    assert told.startswith("holdfast: This database is in use and was not filled by the demo")


def test_the_demo_leaves_the_database_of_another_program_alone(
    settings: dict[str, str], cluster_of: Callable[[int], Cluster]
) -> None:
    with blank_database(cluster_of(NEWEST).url) as url, Sql(url) as sql:
        sql.execute("create table customer (id int)")
        told = refused(finish_process({**settings, "HOLDFAST_DATABASE_URL": url}, *SERVE, "--demo"), 2)
        assert sql.value("select to_regclass('alembic_version')") is None
    assert told.startswith("holdfast: This database is in use and was not filled by the demo")


def test_a_port_or_host_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    settings = {"HOLDFAST_DATA_DIR": str(tmp_path)}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refused(finish_process(settings, "serve", "--port", str(port)))
    assert (
        told == f"holdfast: Port {port} on 127.0.0.1 is taken by another program; choose one with --port.\n"
    )
    told = refused(finish_process(settings, *SERVE, "--host", "a..b"))
    assert told == "holdfast: 'a..b' is not a host name or an IP address.\n"


def test_metrics_of_all_processes_are_on_a_port_of_their_own_which_must_be_free(
    settings: dict[str, str],
) -> None:
    token = {"Authorization": "Bearer 0123456789abcdef"}
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        settings |= {"HOLDFAST_METRICS_PORT": str(port), "HOLDFAST_METRICS_TOKEN": "0123456789abcdef"}
        told = refused(finish_process(settings, *SERVE))
        same = refused(finish_process(settings, "serve", "--port", str(port), "--host", "127.0.0.2"))
    assert told.endswith("taken by another program; choose one with HOLDFAST_METRICS_PORT.\n")
    assert same == "holdfast: HOLDFAST_METRICS_PORT must not be the port of --port.\n"
    with started(settings, *SERVE, "--processes", "2", "--host", "0.0.0.0") as process:
        public = output_of(process).readline().removeprefix(READY).strip().replace("0.0.0.0", "127.0.0.1")
        own = f"http://127.0.0.1:{port}/metrics"
        for _ in range(4):
            assert httpx.get(f"{public}/metrics", headers=token).status_code == 404
        assert httpx.get(own).status_code == 401
        counted = 'holdfast_http_requests_total{method="GET",route="none",status="404"} 4.0'
        wait_until(lambda: counted in httpx.get(own, headers=token).text)
        with socket.create_connection(("127.0.0.1", int(public.rpartition(":")[2]))) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert connection.recv(12) == b"HTTP/1.1 400"
        process.terminate()
        assert process.stderr is not None
        assert '"message":"400 Bad Request: Invalid method encountered"' in process.stderr.read()


@pytest.mark.slow
def test_work_runs_alone_beside_others_and_stops_when_told(tmp_path: Path) -> None:
    settings = {"HOLDFAST_DATA_DIR": str(tmp_path)}
    run_for_json(settings, "migrate")
    try:
        with started(settings, "work", "--json") as one, started(settings, "work", "--json") as other:
            for worker in (one, other):
                assert output_of(worker).readline() == '{"working": true}\n'
            for worker in (other, one):
                worker.terminate()
                assert worker.wait(PATIENCE_SECONDS) == 0
    finally:
        stop_postgres(tmp_path)


def test_ctrl_c_of_work_says_that_it_stopped(settings: dict[str, str]) -> None:
    with started(settings, "work") as worker:
        assert output_of(worker).readline() == "Holdfast is working; Ctrl-C stops it.\n"
        worker.send_signal(signal.SIGINT)
        assert worker.wait(PATIENCE_SECONDS) == 0
        assert worker.stderr is not None
        assert worker.stderr.read() == "Holdfast has stopped.\n"


def test_serve_waits_for_a_database_service_that_is_starting(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "service")
    with cluster:
        settings = {"HOLDFAST_DATABASE_URL": cluster.url}
    with started(settings, *SERVE) as process:
        assert process.stderr is not None
        waiting = json.loads(process.stderr.readline())["message"]
        assert waiting.startswith("waiting for the database: [Errno 2] No such file or directory")
        with cluster:
            assert output_of(process).readline().startswith(READY)
            process.terminate()
            assert process.wait(PATIENCE_SECONDS) == 0
            logged = [json.loads(line) for line in process.stderr if line.startswith("{")]
    (report,) = [line for line in logged if line["message"] == "durability of the database"]
    assert report.items() >= {("fsync", "off"), ("full_page_writes", "on"), ("synchronous_standby_names", "")}
    assert [line["message"].partition(":")[0] for line in logged if "is off" in line["message"]] == [
        "fsync is off"
    ]


def test_serve_that_waits_for_its_database_stops_when_told(tmp_path: Path) -> None:
    with started({"HOLDFAST_DATABASE_URL": f"postgresql:///units?host={tmp_path}"}, *SERVE) as process:
        assert process.stderr is not None
        assert "waiting for the database" in process.stderr.readline()
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0


def test_serve_does_not_wait_for_a_database_that_rejects_its_login(postgres_url: str) -> None:
    of_nobody = postgres_url.replace(urlsplit(postgres_url).netloc, "nobody@", 1)
    for url, why in (
        (with_database(postgres_url, "nowhere"), 'database "nowhere" does not exist'),
        (of_nobody, 'password authentication failed for user "nobody"'),
    ):
        fault = refused(finish_process({"HOLDFAST_DATABASE_URL": url}, *SERVE))
        assert f"PostgreSQL refuses the connection: {why}" in fault


async def test_the_database_is_waited_for_however_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The log says so at first, and then every ten seconds. Each attempt takes four of them."""
    seconds, attempts = 0.0, 0

    async def work() -> str:
        nonlocal seconds, attempts
        seconds, attempts = seconds + 4, attempts + 1
        if attempts > 10:
            return "done"
        with translate_errors():
            raise ConnectionRefusedError("Connection refused")

    monkeypatch.setattr(prepare, "monotonic", lambda: seconds)
    monkeypatch.setattr(prepare, "_PAUSE_SECONDS", 0)
    assert await prepare.retry_while_unreachable(work) == "done"
    assert caplog.messages == ["waiting for the database: Connection refused"] * 4


def test_processes_that_start_while_the_database_is_away_do_not_end_the_service(tmp_path: Path) -> None:
    cluster, get = Cluster(tmp_path / "service"), partial(httpx.get, timeout=PATIENCE_SECONDS)
    with cluster:
        settings = {"HOLDFAST_DATABASE_URL": cluster.url}
        server = start_server(tmp_path, settings)
        try:
            cluster.crash()
            children = psutil.Process(server.process.pid).children()
            for child in children:
                child.kill()
            wait_until(lambda: get(f"{server.address}/healthz").status_code == 200)
            assert get(f"{server.address}/readyz").status_code == 503
            cluster.start()
            wait_until(lambda: get(f"{server.address}/readyz").status_code == 200)
            assert not {child.pid for child in children} & pids_of_children(server)
        finally:
            server.stop()


def pids_of_children(server: RunningServer) -> set[int]:
    return {child.pid for child in psutil.Process(server.process.pid).children()}
