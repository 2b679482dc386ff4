"""`make audit`: what is shipped is named in the SBOM, and advisories against what is locked are found."""

import importlib.metadata
import importlib.resources
import importlib.util
import json
import re
import runpy
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from tests.support.make import ROOT, make

needs_pip_audit = pytest.mark.skipif(
    importlib.util.find_spec("pip_audit") is None or not shutil.which("make"),
    reason="make or pip-audit is not installed; `make audit` installs the latter",
)
SOURCE = ROOT / "src" / "holdfast"
NOBODY_LISTENS = "http://127.0.0.1:1"


@contextmanager
def advisories(flawed: str) -> Iterator[str]:
    """A source of advisories that knows one, against this package."""
    affected = {
        "package": {"name": flawed, "ecosystem": "PyPI"},
        "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "9000"}]}],
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]["name"]
            flaws = [{"id": "OSV-1", "summary": "A flaw.", "affected": [affected]}] if asked == flawed else []
            body = json.dumps({"vulns": flaws} if flaws else {}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def audit(folder: Path, source: str) -> tuple[int, str, list[Any]]:
    done = make("audit", f"SBOM={folder}/sbom.json", f"ARGS=--vulnerability-service osv --osv-url {source}")
    told = done.stdout + "\n".join(line for line in done.stderr.splitlines() if not line.startswith("make: "))
    return done.returncode, told, json.loads((folder / "sbom.json").read_text())["components"]


def sbom() -> dict[str, Any]:
    document: dict[str, Any] = runpy.run_path(str(ROOT / "requirements" / "audit.py"))["sbom"]()
    return document


def test_the_sbom_names_what_is_shipped_with_its_version_and_hashes() -> None:
    document = sbom()
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    purls = {one["purl"]: one for one in document["components"]}
    locked = (ROOT / "requirements" / "base.txt").read_text()
    names = re.findall(r"^([\w.-]+).*==", locked, re.MULTILINE)
    packages = {f"pkg:pypi/{name}@{importlib.metadata.version(name)}" for name in names}
    assert {purl for purl in purls if purl.startswith("pkg:pypi/")} == packages
    hashes = [found["content"] for one in document["components"] for found in one.get("hashes", ())]
    assert hashes == re.findall(r"--hash=sha256:([0-9a-f]{64})", locked)
    databases = {purl.partition(".")[0] for purl in purls if purl.startswith("pkg:generic/")}
    assert databases == {f"pkg:generic/{name}" for name in ("postgresql@16", "postgresql@18", "pgvector@0")}
    vendored = {purl.rpartition("@")[2] for purl in purls if purl.startswith("pkg:npm/")}
    folders = [path.name for path in (SOURCE / "web/static/vendor").iterdir() if path.is_dir()]
    assert {name.rpartition("-")[2] for name in folders} <= vendored


@needs_pip_audit
def test_the_sbom_is_valid_cyclonedx() -> None:
    folder = importlib.resources.files("cyclonedx.schema") / "_res"
    schemas = {
        f"http://cyclonedx.org/schema/{file.name}": json.loads(file.read_text())
        for file in folder.iterdir()
        if file.name.endswith(".SNAPSHOT.schema.json")
    }
    validator = jsonschema_rs.validator_for(
        schemas["http://cyclonedx.org/schema/bom-1.6.SNAPSHOT.schema.json"],
        registry=jsonschema_rs.Registry([*schemas.items()]),
    )
    document = sbom()
    assert [fault.message for fault in validator.iter_errors(document)] == []
    del document["components"][0]["name"]
    assert not validator.is_valid(document)
    names = [one["bom-ref"] for one in sbom()["components"]]
    assert len(set(names)) == len(names)


@pytest.mark.slow
@needs_pip_audit
@pytest.mark.parametrize(("flawed", "code"), [("jinja2", 2), ("nothing", 0)])
def test_an_advisory_against_a_locked_package_is_told_and_fails(
    tmp_path: Path, flawed: str, code: int
) -> None:
    with advisories(flawed) as source:
        returned, told, components = audit(tmp_path, source)
    assert returned == code, told
    (version,) = [one["version"] for one in components if one["name"] == "jinja2"]
    expected = f"jinja2 {version}: OSV-1 (fixed in: 9000)" if code else "Nothing is known against any of the "
    assert expected in told


@needs_pip_audit
def test_without_the_source_of_advisories_a_sentence_says_so_and_the_sbom_is_there(tmp_path: Path) -> None:
    returned, told, components = audit(tmp_path, NOBODY_LISTENS)
    assert returned != 0
    sentence = "The source of advisories cannot be reached, so nothing was audited: "
    assert [line.startswith(sentence) for line in told.splitlines()] == [False, True]
    assert len(components) > 50
