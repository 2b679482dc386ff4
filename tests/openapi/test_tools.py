"""The OpenAPI document satisfies the linters and client generators that integrators use.

`tests/web/api/test_generated_client.py` has the client of openapi-python-client.
"""

import json
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.openapi.conftest import HERE, run
from tests.support.client import Project
from tests.support.npm import npm_tool
from tests.support.server import RunningServer

PACKAGE = "openapi_generator_client"
# openapi-generator takes webhooks for calls of the API, and typescript-fetch makes invalid code of them.
NO_WEBHOOKS = "apis,models,supportingFiles"


def test_redocly_finds_no_error(document: Path) -> None:
    run(document.parent, npm_tool("redocly"), "lint", "--extends=recommended", "--format=stylish", document)


def test_spectral_finds_no_error(document: Path) -> None:
    run(document.parent, npm_tool("spectral"), "lint", "--ruleset", HERE / "spectral.yaml", document)


def test_openapi_fetch_works_with_the_types_of_openapi_typescript(
    document: Path, tmp_path: Path, run_typescript: Callable[[str], None]
) -> None:
    run(tmp_path, npm_tool("openapi-typescript"), document, "--output", "holdfast.ts")
    run_typescript("openapi_fetch.mts")


def test_the_typescript_client_of_openapi_generator_works(
    tmp_path: Path, openapi_generator: Callable[..., None], run_typescript: Callable[[str], None]
) -> None:
    npm_tool("tsc")
    openapi_generator("typescript-fetch", tmp_path / "holdfast", f"--global-property={NO_WEBHOOKS}")
    run_typescript("typescript_fetch.ts")


@pytest.fixture
def units(
    tmp_path: Path,
    openapi_generator: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    real_server: RunningServer,
    api_key: str,
) -> Iterator[Any]:
    """The calls for units of the Python client of openapi-generator."""
    openapi_generator("python", tmp_path / "generated", f"--package-name={PACKAGE}")
    monkeypatch.syspath_prepend(tmp_path / "generated")
    package: Any = import_module(PACKAGE)
    with package.ApiClient(package.Configuration(host=real_server.address, access_token=api_key)) as client:
        yield package.UnitsApi(client)


def test_the_python_client_of_openapi_generator_works(units: Any, project: Project) -> None:
    package: Any = import_module(PACKAGE)
    sent = package.UnitReplacement(type="apartment", areaSqm=120.5, priceSar=950000.25)
    units.put_unit(project.slug, "A/103", sent)
    found = units.get_unit(project.slug, "A/103")
    assert (found.code, found.price_sar, found.bedrooms, found.status) == (
        "A/103",
        950000.25,
        None,
        "available",
    )
    with pytest.raises(package.exceptions.UnprocessableEntityException) as refused:
        units.list_units(project.slug, cursor="nonsense")
    assert json.loads(refused.value.body)["status"] == 422
