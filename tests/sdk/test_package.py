"""The kit as a package of its own: what it holds, what it imports, and that its README is true."""

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from holdfast_webhooks import WsgiReceiver
from sdk.make_vectors import SECRET
from tests.sdk.deliveries import delivery, post, post_to_wsgi
from tests.sdk.test_receivers import serving

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "sdk" / "python"
BLOCKS = re.findall(r"(?ms)^ *```python\n(.*?)^ *```", (PACKAGE / "README.md").read_text())


def test_the_wheel_holds_the_types_and_the_licence_and_works_on_its_own(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=PACKAGE, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("holdfast_webhooks-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "holdfast_webhooks/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"holdfast_webhooks"}
    code = "import sys; sys.path.insert(0, sys.argv[1]); import holdfast_webhooks as kit; print(kit.__file__)"
    command = [sys.executable, "-I", "-S", "-W", "error", "-c", code, str(wheel)]
    ran = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert str(wheel) in ran.stdout.decode()


def test_it_imports_the_standard_library_alone_in_the_syntax_it_promises() -> None:
    promised = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    assert (promised["requires-python"], promised["dependencies"]) == (">=3.9", [])
    for source in (PACKAGE / "src" / "holdfast_webhooks").glob("*.py"):
        tree = ast.parse(source.read_text(), feature_version=(3, 9))
        imported = {name.split(".")[0] for node in ast.walk(tree) for name in imported_by(node)}
        assert imported <= {"holdfast_webhooks", *sys.stdlib_module_names}, source.name


def imported_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


@pytest.fixture
def readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each block of the README defines, run as it stands there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_SECRET", SECRET)
    defined: list[dict[str, Any]] = [{} for _ in BLOCKS]
    for block, names in zip(BLOCKS, defined, strict=True):
        exec(compile(textwrap.dedent(block), "README.md", "exec", dont_inherit=True), names)
    return defined


async def test_the_receivers_of_the_readme_receive(
    readme: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    sold = delivery()
    receivers = [names.get("app") or names.get("application") for names in readme]
    ready = [receiver for receiver in receivers if receiver is not None]
    assert len(ready) == 3
    for receiver in ready * 2:
        is_wsgi = isinstance(receiver, WsgiReceiver)
        assert (post_to_wsgi(receiver, sold) if is_wsgi else await post(receiver, sold)) == 204
    assert capsys.readouterr().out.count("marina-heights/A-101 is sold, booking HF-7K2M9Q") == 1


def test_the_route_of_the_readme_receives_at_its_url(readme: list[dict[str, Any]]) -> None:
    (api,) = (names["api"] for names in readme if "api" in names)
    of_starlette: Any = Starlette(routes=[Route("/hooks/holdfast", readme[0]["app"])])
    assert 'Route("/hooks/holdfast", app)' in (PACKAGE / "README.md").read_text()
    for application in (api, of_starlette):
        sent = delivery()
        with serving(application) as url:
            route = httpx.URL(url).join("/hooks/holdfast")
            answer = httpx.post(route, headers=sent.headers, content=sent.body, trust_env=False)
        assert answer.status_code == 204


async def test_the_handler_of_the_readme_with_its_transaction_acts_once(readme: list[dict[str, Any]]) -> None:
    (own,) = (names for names in readme if "SeenElsewhere" in names)
    sold = delivery()
    assert [await post(own["app"], sold) for _ in range(3)] == [204] * 3
    with own["sqlite3"].connect("mine.db") as mine:
        assert mine.execute("select * from sale").fetchall() == [("A-101", "HF-7K2M9Q")]


async def test_the_ping_of_the_readme_is_accepted_by_its_hook(readme: list[dict[str, Any]]) -> None:
    (signed_ping,) = (names["signed_ping"] for names in readme if "signed_ping" in names)
    (hook,) = (names["hook"] for names in readme if "hook" in names)
    headers, body = signed_ping(SECRET)
    assert hook(headers, body, SECRET) == (204, headers["X-Service-Delivery"])
    assert hook(headers, body + b" ", SECRET)[1].startswith("digest-differs: The digest is not that")
