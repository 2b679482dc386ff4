"""Who takes part: each is a server on a port of its own, started for its turn and stopped after it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.processes import answers, free_port, running

TOP = Path(__file__).resolve().parent.parent
HOLDFAST_COMMAND = str(Path(sys.executable).with_name("holdfast"))
READY = re.compile(rb"Holdfast is ready at http://[^:]+:(\d+)")

# The best of the settings tried on two cores; benchmarks/peers/README.md has the others.
SYNC = ["--worker-class", "sync"]
KEEPING_ALIVE = ["--worker-class", "gthread", "--threads", "4", "--keep-alive", "30"]
NOTHING_SET: Mapping[str, str] = {}
UVICORN = ["uvicorn", "--loop", "uvloop", "--http", "httptools"]


@dataclass(frozen=True, slots=True)
class Ground:
    """A database with a project, a key and units, ready for a contestant."""

    database_url: str
    key: str
    units: int


@dataclass(frozen=True, slots=True)
class Contestant:
    name: str
    ground: Ground
    port: int
    pid: int
    log: Path

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"


Start = Callable[[Ground, Path], AbstractContextManager[Contestant]]


def drf(workers: int, worker_class: Sequence[str] = SYNC) -> Start:
    def command(port: int) -> list[str]:
        bound = ["--workers", str(workers), "--bind", f"127.0.0.1:{port}", "--no-control-socket"]
        return ["gunicorn", *worker_class, *bound, "--access-logfile", "-", "benchmarks.peers.drf.wsgi"]

    return _peer(f"Django REST framework, {_processes(workers)}", command)


def fastapi_orm(workers: int) -> Start:
    def command(port: int) -> list[str]:
        bound = ["--workers", str(workers), "--port", str(port)]
        return [*UVICORN, *bound, "benchmarks.peers.fastapi_orm.app:app"]

    return _peer(f"FastAPI + SQLAlchemy, {_processes(workers)}", command)


def plain_asyncpg() -> Start:
    def command(port: int) -> list[str]:
        return [*UVICORN, "--no-access-log", "--port", str(port), "benchmarks.peers.plain_asyncpg.app:app"]

    return _peer("plain asyncpg handler", command)


def _processes(workers: int) -> str:
    return "1 process" if workers == 1 else f"{workers} processes"


def _peer(name: str, command: Callable[[int], Sequence[str]]) -> Start:
    @contextmanager
    def start(ground: Ground, logs: Path) -> Iterator[Contestant]:
        port = free_port()
        environment = {"BENCHMARK_DATABASE_URL": ground.database_url, "PYTHONPATH": str(TOP)}
        started = [sys.executable, "-m", *command(port)]
        log = logs / f"{name}.log"
        with running(started, environment, log, lambda: answers(port)) as process:
            yield Contestant(name, ground, port, process.pid, log)

    return start


@contextmanager
def holdfast(
    ground: Ground,
    logs: Path,
    processes: int = 1,
    settings: Mapping[str, str] = NOTHING_SET,
    program: str = HOLDFAST_COMMAND,
) -> Iterator[Contestant]:
    """The product as its users start it: only the database and the number of processes are set.

    Parts about selling set where buyers come from or how long they hold; never a limit. ``program`` is the
    command of another checkout, if it is not this one's.
    """
    log = logs / "Holdfast.log"
    command = [program, "serve", "--port", "0", "--processes", str(processes)]
    environment = {"HOLDFAST_DATABASE_URL": ground.database_url, **settings}
    with running(command, environment, log, lambda: READY.search(log.read_bytes()) is not None) as process:
        found = READY.search(log.read_bytes())
        assert found is not None
        name = f"Holdfast, {_processes(processes)}"
        yield Contestant(name, ground, int(found[1]), process.pid, log)


def holdfast_on_two(
    ground: Ground, logs: Path, settings: Mapping[str, str] = NOTHING_SET
) -> AbstractContextManager[Contestant]:
    return holdfast(ground, logs, processes=2, settings=settings)


def web_process(contestant: Contestant) -> int:
    """The process that answers: of those that hold the listening socket, the one furthest down the tree."""
    root = psutil.Process(contestant.pid)
    listening = [root, *root.children(recursive=True)]
    # Not everybody may look into ours, but their command lines say enough.
    ours = [process for process in listening if "holdfast.server.web" in process.cmdline()]
    holders = ours or [process for process in listening if _listens(process, contestant.port)]
    return int(max(holders, key=lambda process: len(process.parents())).pid)


def _listens(process: psutil.Process, port: int) -> bool:
    return any(
        connection.laddr.port == port and connection.status == psutil.CONN_LISTEN
        for connection in process.net_connections("tcp")
    )


def run_holdfast(database_url: str, *arguments: str, program: str = HOLDFAST_COMMAND) -> str:
    environment = {**os.environ, "HOLDFAST_DATABASE_URL": database_url}
    command = [program, *arguments]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout


def add_key(database_url: str, program: str = HOLDFAST_COMMAND) -> str:
    added = run_holdfast(database_url, "key", "add", "--name", "bench", "--json", program=program)
    return str(json.loads(added)["key"])


def add_project(database_url: str, slug: str, program: str = HOLDFAST_COMMAND) -> None:
    run_holdfast(database_url, "project", "add", slug, "--name", "Bench Tower", program=program)
