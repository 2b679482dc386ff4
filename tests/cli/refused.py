"""The `holdfast` command when it says no."""

import subprocess
from collections.abc import Mapping

from tests.support.commands import COMMAND_SECONDS
from tests.support.server import HOLDFAST, environment


def run_refused(settings: Mapping[str, str], exit_code: int, *arguments: str) -> str:
    """What the command had to say on stderr; stdout stays empty and there is no traceback."""
    done = subprocess.run(
        [HOLDFAST, *arguments],
        env=environment(settings),
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr
