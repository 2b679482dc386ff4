"""One run of a minute, and the controls: what is broken on purpose is noticed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.__main__ import CANNOT_RUN
from tests.chaos.controls import CONTROLS, SEED, Control, apply
from tests.chaos.report import Result
from tests.support.programs import is_required

ROOT = Path(__file__).parents[2]


def run(output: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.chaos", "--output", str(output), *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            stdout, stderr = running.communicate()
        finally:
            # Killed, it would leave its mounts and its servers behind.
            running.terminate()
    assert "usage: " not in stderr, stderr
    if running.returncode == CANNOT_RUN and not is_required("chaos"):
        pytest.skip(stdout.strip())
    return subprocess.CompletedProcess(command, running.returncode, stdout, stderr)


@pytest.mark.slow
def test_nothing_is_lost_in_a_minute_of_faults(tmp_path: Path) -> None:
    done = run(tmp_path, "--seed", "1", "--minutes", "1")
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]
    assert done.stdout.splitlines()[-1].startswith("Everything held; ")


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_the_code_still_has_what_a_control_breaks(control: Control, tmp_path: Path) -> None:
    source = apply(control, tmp_path)
    for path in {edit.path for edit in control.edits if edit.path.endswith(".py")}:
        compile((source / "holdfast" / path).read_text(), path, "exec")


@pytest.mark.control
@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: control.name)
def test_what_is_broken_on_purpose_is_noticed(control: Control, tmp_path: Path) -> None:
    source = apply(control, tmp_path)
    plan = ("--seed", str(SEED), "--only", control.fault, "--count", str(control.faults))
    done = run(tmp_path, *plan, "--source", str(source), *control.arguments)
    assert done.returncode == 1, done.stdout + done.stderr[-3000:]
    found = set(Result.load(tmp_path / "result.json").violations)
    assert found & control.found_by, done.stdout
