"""A client that a third-party generator makes of our description works against our server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

from tests.support import states
from tests.support.bodies import without
from tests.support.client import NO_TLS, Project, Unit
from tests.support.server import HOLDFAST, RunningServer
from tests.support.sql import Sql

GENERATOR = HOLDFAST.with_name("openapi-python-client")
PACKAGE = "generated_holdfast_client"
OPTIONS = ["--path", "openapi.json", "--config", "config.json", "--meta", "none", "--fail-on-warning"]
# The generator knows no type for JSON lines; its own formatter is left out, for nobody reads the result.
CONFIGURATION = {
    "post_hooks": [],
    "content_type_overrides": {"application/x-ndjson": "application/octet-stream"},
}


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory, server: RunningServer) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("generated")
    generate(folder, server)
    sys.path.insert(0, str(folder))
    yield import_module(PACKAGE)
    sys.path.remove(str(folder))


def generate(folder: Path, server: RunningServer) -> None:
    """A warning of the generator fails: it would mean that a part of the client is missing."""
    (folder / "openapi.json").write_bytes(httpx.get(f"{server.address}/openapi.json", verify=NO_TLS).content)
    (folder / "config.json").write_text(json.dumps(CONFIGURATION))
    done = subprocess.run(
        [GENERATOR, "generate", *OPTIONS, "--output-path", PACKAGE],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def api(generated: ModuleType, server: RunningServer, api_key: str) -> Iterator[Any]:
    client = generated.AuthenticatedClient(
        base_url=server.address, token=api_key, verify_ssl=NO_TLS, raise_on_unexpected_status=True
    )
    with client as opened:
        yield opened


def call(name: str) -> Any:
    return import_module(f"{PACKAGE}.api.units.{name}")


def model(name: str) -> Any:
    return getattr(import_module(f"{PACKAGE}.models"), name)


def put(api: Any, project: Project, code: str, **fields: Any) -> Any:
    body = model("UnitReplacement")(type_="apartment", area_sqm=120.5, price_sar=950000.25, **fields)
    return call("put_unit").sync_detailed(project.slug, code, client=api, body=body)


def test_it_puts_a_unit(api: Any, project: Project, http: httpx.Client) -> None:
    response = put(api, project, "A/101", bedrooms=3, images=["https://media.example/a.jpg"])
    assert response.status_code == 201
    assert isinstance(response.parsed, model("Unit"))
    assert (response.parsed.code, response.parsed.price_sar) == ("A/101", 950000.25)
    times = ("createdAt", "updatedAt")  # The client spells them in a way of its own.
    assert without(response.parsed.to_dict(), *times) == without(Unit(http, project, "A/101").read(), *times)
    assert put(api, project, "A/101", bedrooms=3).status_code == 200


def test_it_patches_a_unit(api: Any, project: Project) -> None:
    put(api, project, "A-101", bedrooms=3)
    change = model("UnitPatch")(bedrooms=None, status=model("SettableStatus").UNAVAILABLE)
    unit = call("patch_unit").sync(project.slug, "A-101", client=api, body=change)
    assert (unit.bedrooms, unit.status, unit.price_sar) == (None, "unavailable", 950000.25)


def test_it_lists_units_page_by_page(api: Any, project: Project) -> None:
    codes = ["A-101", "A-102", "A-103"]
    for code in codes:
        put(api, project, code)
    first = call("list_units").sync(project.slug, client=api, limit=2)
    second = call("list_units").sync(project.slug, client=api, limit=2, cursor=first.next_cursor)
    assert [unit.code for unit in (*first.units, *second.units)] == codes
    assert second.next_cursor is None


def test_it_understands_a_refusal(api: Any, project: Project, http: httpx.Client, sql: Sql) -> None:
    put(api, project, "A-101")
    states.hold(sql, Unit(http, project, "A-101"))
    change = model("UnitPatch")(price_sar=1)
    refusal = call("patch_unit").sync(project.slug, "A-101", client=api, body=change)
    assert isinstance(refusal, model("Conflict"))
    assert (refusal.reason, refusal.current_status, refusal.fields) == ("terms-locked", "held", ["priceSar"])


def test_it_understands_every_fault(api: Any, project: Project) -> None:
    change = model("UnitPatch")(price_sar=-1, bedrooms=-1)
    refusal = call("patch_unit").sync(project.slug, "A-101", client=api, body=change)
    assert sorted(fault.pointer for fault in refusal.errors) == ["/bedrooms", "/priceSar"]
