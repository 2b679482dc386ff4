"""Processes die, are killed and are stopped; `serve` answers for all of them."""

import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psutil
import pytest

from holdfast.storage.embedded.server import running_postmaster
from tests.cli.refused import run_refused
from tests.support import commands
from tests.support import server as servers
from tests.support.clusters import Cluster
from tests.support.server import RunningServer

PATIENCE_SECONDS = 30


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {"HOLDFAST_DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def server(tmp_path: Path, settings: dict[str, str]) -> Iterator[RunningServer]:
    with servers.serving(tmp_path, settings, "--processes", "2") as running:
        yield running
    stop_leftover_postgres(tmp_path)


def stop_leftover_postgres(folder: Path) -> None:
    left = postmaster(folder)
    if left is not None:
        left.send_signal(signal.SIGINT)
        psutil.wait_procs([left], timeout=PATIENCE_SECONDS)


def postmaster(folder: Path) -> psutil.Process | None:
    found = running_postmaster(folder / "data" / "postgres")
    return None if found is None else psutil.Process(found.pid)


def children(server: RunningServer, kind: str) -> list[psutil.Process]:
    family = psutil.Process(server.process.pid).children()
    return [child for child in family if f"holdfast.server.{kind}" in child.cmdline()]


def wait_until_gone(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=PATIENCE_SECONDS)
    assert not alive


def lives(process: psutil.Process) -> bool:
    """A process that ended stays in the table until its parent has looked."""
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


def wait_for_log_line(server: RunningServer, text: str) -> None:
    """Follows the log as it grows; its writer ends each line at once."""
    deadline = threading.Event()
    timer = threading.Timer(PATIENCE_SECONDS, deadline.set)
    timer.start()
    try:
        while text not in server.log.read_text():
            assert not deadline.wait(0.02), server.log.read_text()[-3000:]
    finally:
        timer.cancel()


def is_ready(server: RunningServer) -> bool:
    """A connection may be one that waits for a process that is being started."""
    return httpx.get(f"{server.address}/readyz", timeout=60).status_code == 200


def wait_until_ready(server: RunningServer) -> None:
    while not is_ready(server):
        pass


def port_is_free(server: RunningServer) -> bool:
    address = urlsplit(server.address)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex((address.hostname, address.port)) != 0


def test_serve_runs_as_many_web_processes_as_asked_and_one_for_work(server: RunningServer) -> None:
    assert len(children(server, "web")) == 2
    assert len(children(server, "work")) == 1


@pytest.mark.parametrize("kind", ["web", "work"])
def test_a_killed_process_is_started_again(server: RunningServer, kind: str) -> None:
    before = children(server, kind)
    before[0].kill()
    wait_for_log_line(server, f"(process {before[0].pid}) ended: signal 9")
    while len(after := children(server, kind)) < len(before):
        pass
    assert before[0] not in after
    assert is_ready(server)


def test_a_killed_database_is_started_again(server: RunningServer, tmp_path: Path) -> None:
    killed = postmaster(tmp_path)
    assert killed is not None
    killed.kill()
    wait_for_log_line(server, "the embedded PostgreSQL had ended and was started again")
    wait_until_ready(server)


def test_nothing_outlives_a_killed_supervisor_but_the_database_which_the_next_start_adopts(
    server: RunningServer, settings: dict[str, str], tmp_path: Path
) -> None:
    project = commands.run_for_json(settings, "project", "add", "tower", "--name", "The Tower")
    family = psutil.Process(server.process.pid).children()
    database = postmaster(tmp_path)
    os.kill(server.process.pid, signal.SIGKILL)
    server.process.wait()
    wait_until_gone(family)
    assert port_is_free(server)
    assert database is not None
    assert database.is_running()
    port = str(urlsplit(server.address).port)
    with servers.serving(tmp_path, settings, "--port", port) as successor:
        assert is_ready(successor)
        assert postmaster(tmp_path) == database
        assert commands.run_for_json(settings, "project", "list")["projects"] == [project]
    assert postmaster(tmp_path) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_takes_everything_along(
    server: RunningServer, tmp_path: Path, number: signal.Signals
) -> None:
    database = postmaster(tmp_path)
    assert database is not None
    family = [*psutil.Process(server.process.pid).children(), database]
    server.process.send_signal(number)
    assert server.process.wait(PATIENCE_SECONDS) == 0
    assert not [process for process in family if lives(process)]
    assert port_is_free(server)


def test_a_signal_before_it_is_ready_takes_everything_along(tmp_path: Path, settings: dict[str, str]) -> None:
    process = subprocess.Popen(
        [servers.HOLDFAST, "serve", "--port", "0"],
        env=servers.environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "making a database" in line:
            break
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    assert output == ""
    assert postmaster(tmp_path) is None


def test_a_second_serve_on_the_same_data_directory_is_refused(
    server: RunningServer, settings: dict[str, str]
) -> None:
    told = run_refused(settings, 1, "serve", "--port", "0")
    assert "already running on" in told
    assert is_ready(server)


def test_a_taken_port_is_one_sentence(settings: dict[str, str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = run_refused(settings, 1, "serve", "--port", str(port))
    assert (
        told == f"holdfast: Port {port} on 127.0.0.1 is taken by another program; choose one with --port.\n"
    )


def test_what_cannot_be_a_host_is_one_sentence(settings: dict[str, str]) -> None:
    told = run_refused(settings, 1, "serve", "--host", "a..b", "--port", "0")
    assert told == "holdfast: 'a..b' is not a host name or an IP address.\n"


def test_a_command_works_beside_serve_and_leaves_it_running(
    server: RunningServer, settings: dict[str, str]
) -> None:
    assert commands.run_for_json(settings, "key", "list")["keys"] == []
    assert is_ready(server)


def test_the_demo_prints_a_key_and_a_line_that_works_when_pasted(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    first = run_demo(tmp_path, settings)
    second = run_demo(tmp_path, settings)
    assert first["key"] != second["key"]
    assert (first["status"], second["status"]) == ("201", "200")
    keys = commands.run_for_json(settings, "key", "list")["keys"]
    assert [key["revokedAt"] is None for key in sorted(keys, key=lambda key: str(key["createdAt"]))] == [
        False,
        True,
    ]


def run_demo(folder: Path, settings: dict[str, str]) -> dict[str, str]:
    with (folder / "demo.log").open("a") as log:
        process = subprocess.Popen(
            [servers.HOLDFAST, "serve", "--port", "0", "--demo"],
            env=servers.environment(settings),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if "Ctrl-C" in line:
            break
    curl = next(line for line in printed.splitlines() if line.startswith("curl "))
    pasted = f"{curl} --silent --output /dev/null --write-out '%{{http_code}}'"
    status = subprocess.run(pasted, shell=True, capture_output=True, text=True, check=True).stdout
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
    found = re.search(r"hfk_\w+", printed)
    assert found is not None
    return {"key": found[0], "status": status}


def test_work_runs_alone_beside_others_and_stops_when_told(settings: dict[str, str], tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [servers.HOLDFAST, "work", "--json"],
            env=servers.environment(settings),
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == '{"working": true}\n'
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.communicate(timeout=PATIENCE_SECONDS)
        assert worker.returncode == 0
    stop_leftover_postgres(tmp_path)


def test_serve_waits_for_a_database_service_that_is_starting(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "service")
    with cluster:
        url = cluster.url
    process = subprocess.Popen(
        [servers.HOLDFAST, "serve", "--port", "0"],
        env=servers.environment({"HOLDFAST_DATABASE_URL": url}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    assert "waiting for the database" in process.stderr.readline()
    with cluster:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(servers.READY)
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0
