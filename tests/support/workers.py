"""`holdfast work` as its users start it, to be killed, stopped for a while and told to leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.support.server import HOLDFAST, environment

WORKING = "Holdfast is working"


class Pace(NamedTuple):
    """How fast the workers of a test give up, and try again."""

    timeout_seconds: float = 10.0
    first_gap_seconds: float = 0.4
    lease_seconds: float = 12.0
    attempts: int = 8

    def gap_after(self, number: int) -> float:
        return self.first_gap_seconds * float(2 ** (number - 1))

    def settings(self) -> dict[str, str]:
        return {
            "HOLDFAST_ATTEMPT_TIMEOUT_SECONDS": str(self.timeout_seconds),
            "HOLDFAST_RETRY_FIRST_GAP_SECONDS": str(self.first_gap_seconds),
            "HOLDFAST_LEASE_SECONDS": str(self.lease_seconds),
            "HOLDFAST_ATTEMPTS": str(self.attempts),
        }


class Worker:
    """One process; its sessions carry its name, so that the database can tell whose a claim is."""

    def __init__(self, name: str, settings: Mapping[str, str], folder: Path) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        self._spoken = folder / f"{name}.out"
        url = settings["HOLDFAST_DATABASE_URL"]
        named = f"{url}{'&' if '?' in url else '?'}tests.worker={name}"
        with self.log.open("w") as log, self._spoken.open("w") as spoken:
            self.process = subprocess.Popen(
                [HOLDFAST, "work"],
                env=environment({**settings, "HOLDFAST_DATABASE_URL": named}),
                stdout=spoken,
                stderr=log,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def lives(self) -> bool:
        return self.process.poll() is None

    @property
    def is_working(self) -> bool:
        return WORKING in self._spoken.read_text()

    def kill(self) -> None:
        """As if the power had failed; also at the end of a test, whatever has become of it."""
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def complaints(self) -> list[str]:
        """What nobody has foreseen: errors of its own, and all that is no line of its log."""
        written = self.log.read_text().splitlines()
        lines = [json.loads(line) for line in written if line.startswith("{")]
        errors = [line for line in lines if line["level"] in ("error", "critical")]
        foreign = [line for line in written if not line.startswith("{")]
        return foreign + [f"{line['message']}\n{line.get('exception', '')}" for line in errors]
