"""The load: wrk, with 48 connections unless a part says otherwise."""

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import workload
from benchmarks.contestants import Contestant

CONNECTIONS = 48
SCRIPTS = Path(__file__).parent / "load"
HOW_TO_INSTALL = "wrk is not installed. On Debian or Ubuntu: apt install wrk. On macOS: brew install wrk."


class WrkMissing(Exception):
    """The load generator is not on the PATH."""


class InvalidRun(Exception):
    """An answer other than the expected one, a broken connection, a write that is not there: all is void."""


@dataclass(frozen=True, slots=True)
class Answered:
    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    p95_ms: float = 0.0
    refused: int = 0
    """Answers of 400 and above, where the load is meant to earn them."""

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


@dataclass(frozen=True, slots=True)
class Load:
    """A script of ours and its arguments."""

    script: str
    arguments: Sequence[str]
    seconds: int
    connections: int = CONNECTIONS

    def command(self, contestant: Contestant) -> list[str]:
        return [
            find_wrk(), "-t1", f"-c{self.connections}", f"-d{self.seconds}s", "--timeout", "20s",
            "-s", str(SCRIPTS / self.script), contestant.address, "--", *self.arguments,
        ]  # fmt: skip


def find_wrk() -> str:
    found = shutil.which("wrk")
    if found is None:
        raise WrkMissing(HOW_TO_INSTALL)
    return found


def put_load(
    contestant: Contestant, units: int, seconds: int, slug: str = workload.SLUG, *, new_ids: bool = False
) -> Answered:
    """PUT over ``units`` existing units for a while, as fast as the contestant answers.

    ``new_ids``: each request has an ``X-Request-Id`` of its own.
    """
    load = _put(contestant, units, seconds, slug, new_ids=new_ids)
    return _all_accepted(contestant, _run(contestant, load))


@contextmanager
def put_load_meanwhile(contestant: Contestant, units: int, at_most_seconds: int) -> Iterator[list[Answered]]:
    """The same while the block runs; what was answered stands in the list after it."""
    with _meanwhile(contestant, _put(contestant, units, at_most_seconds, workload.SLUG)) as answered:
        yield answered
    _all_accepted(contestant, answered[0])


def hold_load(contestant: Contestant, units: range, seconds: int) -> Answered:
    """Hold each of the units once, as fast as the contestant answers."""
    load = Load("hold.lua", [workload.offer_path(""), str(units.start), str(len(units))], seconds)
    return _all_accepted(contestant, _run(contestant, load))


def same_load(contestant: Contestant, method: str, path: str, seconds: int, connections: int) -> Answered:
    """The same request on every connection. What is refused is counted and left to the caller to judge."""
    return _run(contestant, Load("same.lua", [method, path], seconds, connections))


def same_load_meanwhile(
    contestant: Contestant, method: str, path: str, at_most_seconds: int, connections: int
) -> AbstractContextManager[list[Answered]]:
    """The same while the block runs; what was answered stands in the list after it."""
    return _meanwhile(contestant, Load("same.lua", [method, path], at_most_seconds, connections))


@contextmanager
def _meanwhile(contestant: Contestant, load: Load) -> Iterator[list[Answered]]:
    answered: list[Answered] = []
    with subprocess.Popen(load.command(contestant), stdout=subprocess.PIPE, text=True) as process:
        try:
            yield answered
        finally:
            # wrk takes this as the end of its time, and reports as it does then.
            process.send_signal(signal.SIGINT)
        output, _ = process.communicate()
    answered.append(_read(contestant, output))


def voided(contestant: Contestant, why: str) -> InvalidRun:
    return InvalidRun(
        f"{contestant.name}: {why} Its log ends with:\n{contestant.log.read_text(errors='replace')[-2000:]}"
    )


def _put(contestant: Contestant, units: int, seconds: int, slug: str, *, new_ids: bool = False) -> Load:
    sequence = str(workload.first_sequence())
    arguments = [workload.units_path(slug), contestant.ground.key, str(units), sequence, workload.BODY]
    arguments += ["ids"] if new_ids else []
    return Load("put.lua", arguments, seconds)


def _run(contestant: Contestant, load: Load) -> Answered:
    finished = subprocess.run(load.command(contestant), capture_output=True, text=True, check=True)
    return _read(contestant, finished.stdout)


def _read(contestant: Contestant, output: str) -> Answered:
    found = json.loads(output.strip().splitlines()[-1])
    broken = found.pop("broken")
    if broken or not found["requests"]:
        raise voided(contestant, f"{broken} connections broke.")
    return Answered(**found)


def _all_accepted(contestant: Contestant, answered: Answered) -> Answered:
    if answered.refused:
        raise voided(contestant, f"{answered.refused} answers were not 2xx.")
    return answered
