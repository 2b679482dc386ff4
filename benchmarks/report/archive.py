"""The folder of results: one JSON file a day, and the page and the picture of the newest."""

import json
from pathlib import Path
from typing import Any

from benchmarks.report.findings import Finding
from benchmarks.report.markdown import page
from benchmarks.report.picture import draw

PICTURE = "results.png"


def keep(folder: Path, machine: dict[str, str], command: str, findings: list[Finding]) -> None:
    """Parts measured again on the same day replace their older selves; the others stay."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{machine['date']}.json"
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    parts = stored.get("parts", {}) if stored.get("machine") == machine else {}
    for finding in findings:
        parts[finding.name] = finding.as_json() | {"command": command}
    contents = {"machine": machine, "parts": parts}
    path.write_text(json.dumps(contents, indent=2, ensure_ascii=False) + "\n")
    _publish(folder, machine, parts)


def _publish(folder: Path, machine: dict[str, str], parts: dict[str, Any]) -> None:
    commands = " and ".join(dict.fromkeys(part["command"] for part in parts.values()))
    known = [{key: value for key, value in part.items() if key != "command"} for part in parts.values()]
    findings = [Finding.from_json(part) for part in known]
    draw(folder / PICTURE, machine, findings)
    (folder / "README.md").write_text(page(machine, commands, findings, PICTURE))
