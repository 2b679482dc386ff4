"""Schemathesis reads our own description and looks for an answer that it does not promise."""

import subprocess
from pathlib import Path

import pytest

from tests.support.client import Project
from tests.support.server import HOLDFAST, RunningServer, environment

SCHEMATHESIS = HOLDFAST.with_name("schemathesis")
# Not every rule can be told in a schema (an id must be that of the unit, a code must be in NFC), so
# what fits the schema may still be refused.
NOT_OURS = "positive_data_acceptance"
OPTIONS = ["--checks", "all", "--exclude-checks", NOT_OURS, "--generation-deterministic", "--no-shrink"]


def explore(folder: Path, server: RunningServer, key: str, config: str, *options: str) -> None:
    configuration = folder / "schemathesis.toml"
    configuration.write_text(config)
    done = subprocess.run(
        [SCHEMATHESIS, "--no-color", "--config-file", configuration, "run", f"{server.address}/openapi.json"]
        + ["--header", f"Authorization: Bearer {key}", *OPTIONS, *options],
        cwd=folder,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("phases", ["examples,coverage", "fuzzing", "stateful"])
def test_in_a_project_that_exists_every_answer_is_as_described(
    server: RunningServer, api_key: str, project: Project, tmp_path: Path, phases: str
) -> None:
    config = f'[parameters]\n"path.slug" = "{project.slug}"\n'
    explore(tmp_path, server, api_key, config, "--phases", phases, "--max-examples", "40")


def test_anywhere_every_answer_is_as_described(server: RunningServer, api_key: str, tmp_path: Path) -> None:
    explore(tmp_path, server, api_key, "", "--phases", "coverage,fuzzing", "--max-examples", "20")
