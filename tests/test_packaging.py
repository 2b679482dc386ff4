"""What is given twice in the packaging says the same twice."""

import json
import re
import tomllib
from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]
BUILD_TOOLS = {"editables", "hatchling"}


def names(requirements: list[str]) -> set[str]:
    found = (re.match(r"[a-z][\w.-]*", line) for line in requirements)
    return {match[0] for match in found if match is not None}


def read(name: str) -> list[str]:
    return (ROOT / "requirements" / name).read_text().splitlines()


def test_the_package_and_the_locked_requirements_name_the_same_libraries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert names(project["dependencies"]) == names(read("base.in")) - BUILD_TOOLS


def test_every_locked_requirement_has_its_hashes() -> None:
    for name in ("base.txt", "dev.txt", "bench.txt"):
        lines = read(name)
        pinned = [at for at, line in enumerate(lines) if re.match(r"[a-z].*==", line)]
        assert pinned
        assert all("--hash=sha256:" in lines[at + 1] for at in pinned), name


def test_the_locks_name_no_registry_and_no_machine() -> None:
    for name in ("base.txt", "dev.txt", "bench.txt"):
        text = (ROOT / "requirements" / name).read_text()
        assert not re.search(r"https?:|file:/|--index-url|--find-links|--trusted-host|(^|\s)/\w", text), name


def test_the_npm_lock_has_a_hash_and_no_registry_for_every_package() -> None:
    lock = json.loads((ROOT / "tests" / "openapi" / "package-lock.json").read_text())
    packages = [package for path, package in lock["packages"].items() if path]
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages)
    assert not any("resolved" in package for package in packages)


def test_locks_that_are_installed_together_agree() -> None:
    versions: dict[str, str] = {}
    for name in ("base.txt", "dev.txt", "bench.txt"):
        for package, version in re.findall(r"^([a-z][\w.-]*)==(\S+)", "\n".join(read(name)), re.MULTILINE):
            assert versions.setdefault(package, version) == version, package


def test_the_wheel_holds_what_pages_and_papers_are_made_of() -> None:
    package = ROOT / "src" / "holdfast"
    packed = {file.path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    for folder in ("web/templates", "web/static", "web/documents", "web/locale"):
        files = [path for path in (package / folder).rglob("*") if path.is_file() and path.suffix != ".pyc"]
        assert files
        assert {str(path) for path in files} <= packed, folder
