"""The load: wrk with 48 connections."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks import workload
from benchmarks.contestants import Contestant

CONNECTIONS = 48
SCRIPT = Path(__file__).parent / "load" / "put.lua"
HOW_TO_INSTALL = "wrk is not installed. On Debian or Ubuntu: apt install wrk. On macOS: brew install wrk."


class WrkMissing(Exception):
    """The load generator is not on the PATH."""


class InvalidRun(Exception):
    """An answer other than 2xx, a broken connection, a write that is not there: the run is void."""


@dataclass(frozen=True, slots=True)
class Answered:
    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.requests / self.seconds


def find_wrk() -> str:
    found = shutil.which("wrk")
    if found is None:
        raise WrkMissing(HOW_TO_INSTALL)
    return found


def put_load(contestant: Contestant, units: int, seconds: int, slug: str = workload.SLUG) -> Answered:
    """PUT over ``units`` existing units for a while, as fast as the contestant answers."""
    command = [
        find_wrk(), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--timeout", "20s", "-s", str(SCRIPT),
        contestant.address, "--", f"/v1/integration/projects/{slug}/units/", contestant.ground.key,
        str(units), str(workload.first_sequence()), workload.BODY,
    ]  # fmt: skip
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(finished.stdout.strip().splitlines()[-1])
    refused, broken = found.pop("refused"), found.pop("broken")
    if refused or broken or not found["requests"]:
        raise InvalidRun(
            f"{contestant.name}: {refused} answers were not 2xx, {broken} connections broke."
            " Its log ends with:\n"
            f"{contestant.log.read_text(errors='replace')[-2000:]}"
        )
    return Answered(**found)
