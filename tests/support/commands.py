"""The `holdfast` command, as a script would call it."""

import json
import subprocess
from collections.abc import Mapping
from typing import Any

from tests.support.server import HOLDFAST, environment

COMMAND_SECONDS = 60


def finish(settings: Mapping[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [HOLDFAST, *arguments],
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


def run(settings: Mapping[str, str], *arguments: str) -> str:
    done = finish(settings, *arguments)
    assert done.returncode == 0, f"holdfast {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def run_for_json(settings: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(settings, *arguments, "--json"))
    return answer
