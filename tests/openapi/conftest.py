"""The OpenAPI document as a file, and the tools that are run on it."""

import json
import logging
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.web.openapi.document import openapi_document
from tests.support.client import Project
from tests.support.java import require_java
from tests.support.node import node
from tests.support.npm import NODE_MODULES, npm_tool
from tests.support.projects import add_project
from tests.support.server import HOLDFAST, RunningServer
from tests.support.sql import Sql

HERE = Path(__file__).parent
OPENAPI_GENERATOR = HOLDFAST.with_name("openapi-generator-cli")
SECONDS = 240
ENVIRONMENT = {
    # The tools are not to report that they were used, nor to ask whether there is a newer version of them.
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "NO_COLOR": "1",
    # openapi-generator runs for seconds only: too short for the optimising compiler to be worth it.
    "JAVA_OPTS": "-XX:TieredStopAtLevel=1",
}


def run(folder: Path, *command: str | Path) -> str:
    """Run a tool that must succeed. What it says is shown by `pytest -rP`, if there are only warnings."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    logging.getLogger(__name__).info(done.stdout)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="session")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    path.write_text(json.dumps(openapi_document(), indent=1))
    return path


@pytest.fixture
def project(sql: Sql) -> Project:
    return add_project(sql)


@pytest.fixture
def openapi_generator(document: Path) -> Callable[..., None]:
    """Generate a client of the document into a folder."""
    require_java()

    def generate(generator: str, folder: Path, *options: str) -> None:
        paths = ("-i", document, "-o", folder)
        said = run(folder.parent, OPENAPI_GENERATOR, "generate", "-g", generator, *paths, *options)
        assert "ERROR" not in said, said

    return generate


@pytest.fixture
def run_typescript(
    tmp_path: Path, real_server: RunningServer, api_key: str, project: Project
) -> Callable[[str], None]:
    """Type-check a program of this folder with what was generated into `tmp_path`, and run it."""

    def compile_and_run(program: str) -> None:
        for file in ("package.json", "tsconfig.json", program):
            shutil.copy(HERE / file, tmp_path)
        (tmp_path / "node_modules").symlink_to(NODE_MODULES)
        run(tmp_path, npm_tool("tsc"), "--project", ".")
        compiled = Path("built", program.replace("ts", "js"))
        run(tmp_path, node(), compiled, real_server.address, api_key, project.slug)

    return compile_and_run
