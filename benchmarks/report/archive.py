"""The folder of results: one JSON file a day, and the page and the picture of the newest."""

import hashlib
import json
from pathlib import Path
from typing import Any

import holdfast
from benchmarks.report.findings import Finding
from benchmarks.report.markdown import page
from benchmarks.report.picture import draw

PICTURE = "results.png"
MEASURED = (Path(holdfast.__file__).parent, Path(__file__).parent.parent)
SOURCES = (".py", ".lua", ".sql")


def keep(folder: Path, machine: dict[str, str], command: str, findings: list[Finding]) -> None:
    """Parts of the same day, machine and code stand on one page; any other mixture would mislead."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{machine['date']}.json"
    about = {"machine": machine, "code": _fingerprint()}
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    parts = stored["parts"] if {name: stored.get(name) for name in about} == about else {}
    for finding in findings:
        parts[finding.name] = finding.as_json() | {"command": command}
    path.write_text(json.dumps(about | {"parts": parts}, indent=2, ensure_ascii=False) + "\n")
    _publish(folder, machine, parts)


def _fingerprint() -> str:
    """Of the product and of the benchmark: a change to either begins a new page."""
    found = hashlib.sha256()
    for top in MEASURED:
        for path in sorted(path for path in top.rglob("*") if path.suffix in SOURCES):
            found.update(path.relative_to(top).as_posix().encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _publish(folder: Path, machine: dict[str, str], parts: dict[str, Any]) -> None:
    commands = " and ".join(dict.fromkeys(part["command"] for part in parts.values()))
    known = [{key: value for key, value in part.items() if key != "command"} for part in parts.values()]
    findings = [Finding.from_json(part) for part in known]
    picture = PICTURE if draw(folder / PICTURE, machine, findings) else None
    (folder / "README.md").write_text(page(machine, commands, findings, picture))
