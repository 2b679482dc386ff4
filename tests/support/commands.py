"""The `holdfast` command, called in this process, or as a process where that is the point."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping
from typing import Any

from click.testing import CliRunner

from holdfast.cli import main
from tests.support.server import HOLDFAST, PATIENCE_SECONDS, environment

COMMAND_SECONDS = PATIENCE_SECONDS
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def finish(
    settings: Mapping[str, str], *arguments: str, stdin: str | bytes = ""
) -> subprocess.CompletedProcess[str]:
    """What the process would have done, without its start; not for `serve` and `work`, which set up logs."""
    unset: dict[str, str | None] = {name: None for name in os.environ if name.startswith("HOLDFAST_")}
    handlers = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        done = CliRunner().invoke(
            main,
            arguments,
            input=stdin,
            env={**unset, **environment(settings)},
            prog_name="holdfast",
        )
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(arguments, done.exit_code, done.stdout, done.stderr)


def finish_process(
    settings: Mapping[str, str], *arguments: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [HOLDFAST, *arguments],
        env=environment(settings),
        input=stdin,
        capture_output=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    return subprocess.CompletedProcess(arguments, done.returncode, done.stdout.decode(), done.stderr.decode())


def run(settings: Mapping[str, str], *arguments: str) -> str:
    done = finish(settings, *arguments)
    assert done.returncode == 0, f"holdfast {' '.join(arguments)}: {done.stdout}{done.stderr}"
    return done.stdout


def run_for_json(settings: Mapping[str, str], *arguments: str) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(run(settings, *arguments, "--json"))
    return answer


def run_refused(settings: Mapping[str, str], exit_code: int, *arguments: str) -> str:
    """What the command had to say on stderr; stdout stays empty."""
    return refused(finish(settings, *arguments), exit_code)


def refused(done: subprocess.CompletedProcess[str], exit_code: int = 1) -> str:
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr
