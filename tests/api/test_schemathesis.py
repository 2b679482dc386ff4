"""Schemathesis reads our own description and looks for an answer that it does not promise."""

import subprocess
from pathlib import Path

from tests.support.client import Project
from tests.support.server import HOLDFAST, RunningServer, environment

SCHEMATHESIS = HOLDFAST.with_name("schemathesis")
HOOKS = Path(__file__).parents[1] / "support" / "schemathesis_lines.py"
CONFIGURATION = f"""
hooks = "{HOOKS}"

# Not every rule can be told in a schema (an id must be that of the unit, a code must be in NFC), so
# what fits the schema may still be refused.
[checks]
positive_data_acceptance.enabled = false

# The bulk route answers 200 with a problem for each item that breaks the schema.
[[operations]]
include-operation-id = "putUnits"
checks.negative_data_rejection.enabled = false
"""


def explore(folder: Path, server: RunningServer, key: str, config: str, *options: str) -> None:
    configuration = folder / "schemathesis.toml"
    configuration.write_text(config)
    arguments = [f"{server.address}/openapi.json", "--header", f"Authorization: Bearer {key}"]
    arguments += ["--generation-deterministic", "--no-shrink"]
    done = subprocess.run(
        [SCHEMATHESIS, "--no-color", "--config-file", configuration, "run", *arguments, *options],
        cwd=folder,
        env=environment({}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_in_a_project_that_exists_every_answer_is_as_described(
    server: RunningServer, api_key: str, project: Project, tmp_path: Path
) -> None:
    config = f'{CONFIGURATION}\n[parameters]\n"path.slug" = "{project.slug}"\n'
    phases = "examples,coverage,fuzzing,stateful"
    explore(tmp_path, server, api_key, config, "--phases", phases, "--max-examples", "20")


def test_anywhere_every_answer_is_as_described(server: RunningServer, api_key: str, tmp_path: Path) -> None:
    explore(tmp_path, server, api_key, CONFIGURATION, "--phases", "fuzzing", "--max-examples", "15")
