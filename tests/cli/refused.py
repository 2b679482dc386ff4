"""The `holdfast` command when it says no."""

from collections.abc import Mapping

from tests.support.commands import finish


def run_refused(settings: Mapping[str, str], exit_code: int, *arguments: str) -> str:
    """What the command had to say on stderr; stdout stays empty and there is no traceback."""
    done = finish(settings, *arguments)
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    return done.stderr
