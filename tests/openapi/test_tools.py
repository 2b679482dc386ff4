"""The OpenAPI document satisfies the linters and client generators that integrators use.

`tests/web/api/test_generated_client.py` has the client of openapi-python-client.
"""

import json
import logging
import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from holdfast.web.openapi.document import openapi_document
from tests.support.programs import installed, is_required
from tests.support.projects import add_project
from tests.support.server import HOLDFAST, RunningServer
from tests.support.sql import Sql

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
SECONDS = 600
ENVIRONMENT = {
    # The tools are not to report that they were used, nor to ask whether there is a newer version of them.
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "NO_COLOR": "1",
    # openapi-generator runs for seconds only: too short for the optimising compiler to be worth it.
    "JAVA_OPTS": "-XX:TieredStopAtLevel=1",
}
NODE_MODULES = Path(sys.prefix, "openapi-tools", "node_modules")
NO_TOOLS = "The npm tools of tests/openapi are not installed; `make check` does it where there is npm"
NO_JAVA = "There is no Java on this machine; on Debian: apt install openjdk-17-jre-headless"
PACKAGE = "openapi_generator_client"
# openapi-generator takes webhooks for calls of the API, and typescript-fetch makes invalid code of them.
NO_WEBHOOKS = "--global-property=apis,models,supportingFiles"


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


def npm_tool(name: str) -> Path:
    """Its path; without it the test is skipped, except where it must not be."""
    installed("node")
    tool = NODE_MODULES / ".bin" / name
    if not tool.exists() and not is_required("node"):
        pytest.skip(NO_TOOLS)
    assert tool.exists(), NO_TOOLS
    return tool


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("openapi") / "openapi.json"
    path.write_text(json.dumps(openapi_document(), indent=1))
    return path


def generate(document: Path, generator: str, folder: Path, *options: str) -> None:
    """A client by openapi-generator. On macOS, `java` may be a stub that only tells where to download it."""
    java = shutil.which("java")
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        pytest.skip(NO_JAVA)
    program = HOLDFAST.with_name("openapi-generator-cli")
    said = run(folder.parent, program, "generate", "-g", generator, "-i", document, "-o", folder, *options)
    assert "ERROR" not in said, said


def test_linters_find_no_error(document: Path) -> None:
    folder = document.parent
    run(folder, npm_tool("redocly"), "lint", "--extends=recommended", "--format=stylish", document)
    run(folder, npm_tool("spectral"), "lint", "--ruleset", HERE / "spectral.yaml", document)


@pytest.mark.parametrize("program", ["openapi_fetch.mts", "typescript_fetch.ts"])
def test_a_generated_typescript_client_is_type_checked_and_works(
    document: Path, program: str, tmp_path: Path, real_server: RunningServer, api_key: str, sql: Sql
) -> None:
    compiler = npm_tool("tsc")
    if program == "openapi_fetch.mts":
        run(tmp_path, npm_tool("openapi-typescript"), document, "--output", "holdfast.ts")
    else:
        generate(document, "typescript-fetch", tmp_path / "holdfast", NO_WEBHOOKS)
    for file in ("package.json", "tsconfig.json", program):
        shutil.copy(HERE / file, tmp_path)
    (tmp_path / "node_modules").symlink_to(NODE_MODULES)
    run(tmp_path, compiler, "--project", ".")
    compiled = Path("built", program.replace("ts", "js"))
    run(tmp_path, installed("node"), compiled, real_server.address, api_key, add_project(sql).slug)


def test_the_python_client_of_openapi_generator_works(
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    real_server: RunningServer,
    api_key: str,
    sql: Sql,
) -> None:
    generate(document, "python", tmp_path / "generated", f"--package-name={PACKAGE}")
    monkeypatch.syspath_prepend(tmp_path / "generated")
    package: Any = import_module(PACKAGE)
    slug = add_project(sql).slug
    configuration = package.Configuration(host=real_server.address, access_token=api_key)
    with package.ApiClient(configuration) as client:
        units = package.UnitsApi(client)
        sent = package.UnitReplacement(type="apartment", areaSqm=120.5, priceSar=950000.25)
        units.put_unit(slug, "A/103", sent)
        found = units.get_unit(slug, "A/103")
        assert (found.code, found.price_sar, found.bedrooms) == ("A/103", 950000.25, None)
        assert found.status == "available"
        with pytest.raises(package.exceptions.UnprocessableEntityException) as refused:
            units.list_units(slug, cursor="nonsense")
        assert json.loads(refused.value.body)["status"] == 422
