"""What an idle server holds in memory."""

import time

import psutil

from benchmarks import memory, workload
from benchmarks.arena import Arena
from benchmarks.contestants import Contestant, holdfast, web_process
from benchmarks.one_connection import OneConnection
from benchmarks.parts.put import UNITS
from benchmarks.report.findings import Finding, Table, Target

SETTLE_SECONDS = 3
MB = 1_000_000


def measure(arena: Arena) -> Finding:
    arena.progress("idle: starting Holdfast and leaving it alone")
    with holdfast(arena.ground("holdfast", UNITS), arena.logs) as contestant:
        with OneConnection(contestant) as client:
            client.request("PUT", workload.unit_path(workload.SLUG, 1), workload.body(1, "1.00"))
        time.sleep(SETTLE_SECONDS)
        figures = _resident(contestant)
    web = figures["web"]
    rows = [[name, f"{resident / MB:.0f}"] for name, resident in figures.items()]
    target = Target("memory of an idle web process", web / MB, 120, False, " MB")
    title = "Memory of an idle server"
    return Finding("idle", title, [Table(["process", "resident MB"], rows)], [target], dict(figures))


def _resident(contestant: Contestant) -> dict[str, int]:
    web = web_process(contestant)
    root = psutil.Process(contestant.pid)
    resident = {"web": memory.resident_bytes(web)}
    for process in [root, *root.children(recursive=True)]:
        if process.pid != web:
            resident[_name(process)] = memory.resident_bytes(process.pid)
    return resident


def _name(process: psutil.Process) -> str:
    """A child is started as a module of ours; the supervisor is the command itself."""
    modules = [part for part in process.cmdline() if part.startswith("holdfast.")]
    return modules[0].rpartition(".")[2] if modules else "supervisor"
