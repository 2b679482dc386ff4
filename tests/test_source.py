"""What the packaging says twice agrees, and the source uses no private name of a library."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import holdfast

ROOT = Path(__file__).parents[1]
SOURCE = Path(holdfast.__file__).parent
BUILD_TOOLS = {"editables", "hatchling"}
LOCKS = ("base.txt", "dev.txt", "bench.txt", "audit.txt")


def requirements(name: str) -> str:
    return (ROOT / "requirements" / name).read_text()


def names(lines: list[str]) -> set[str]:
    return {found[0] for line in lines if (found := re.match(r"[a-z][\w.-]*", line))}


def test_the_package_and_the_locked_requirements_name_the_same_libraries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert names(project["dependencies"]) == names(requirements("base.in").splitlines()) - BUILD_TOOLS


def test_the_locks_agree_have_hashes_and_name_no_registry_and_no_machine() -> None:
    versions: dict[str, str] = {}
    for name in LOCKS:
        text = requirements(name)
        assert not re.search(r"https?:|file:/|--index-url|--find-links|--trusted-host|(^|\s)/\w", text), name
        pinned = re.findall(r"^([a-z][\w.-]*)(?:\[.*\])?==(\S+).*\n(.*)", text, re.MULTILINE)
        assert pinned
        for package, version, next_line in pinned:
            assert "--hash=sha256:" in next_line, package
            assert versions.setdefault(package, version) == version, package


def test_the_npm_lock_has_a_hash_and_no_registry_for_every_package() -> None:
    lock = json.loads((ROOT / "tests" / "openapi" / "package-lock.json").read_text())
    packages = [package for path, package in lock["packages"].items() if path]
    assert packages
    assert all(package["integrity"].startswith("sha512-") for package in packages)
    assert not any("resolved" in package for package in packages)


def test_the_wheel_holds_templates_static_files_documents_and_translations() -> None:
    packed = {file.path for file in WheelBuilder(str(ROOT)).recurse_included_files()}
    for folder in ("web/templates", "web/static", "web/documents", "web/locale"):
        paths = (ROOT / "src" / "holdfast" / folder).rglob("*")
        files = {str(path) for path in paths if path.is_file() and path.suffix != ".pyc"}
        assert files
        assert files <= packed, folder


# Private names. Public in spite of theirs: documented methods of named tuples, and os._exit.
DOCUMENTED = frozenset({"_asdict", "_exit", "_field_defaults", "_fields", "_make", "_replace"})


def is_private(name: str) -> bool:
    """``_`` alone is the name by which texts are translated."""
    return name.startswith("_") and name != "_" and not (name.startswith("__") and name.endswith("__"))


def target_names(target: ast.expr) -> Iterator[str]:
    """Yield what an assignment defines: a name, or an attribute of ``self`` or ``cls``."""
    match target:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            yield name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from target_names(part)


def defined_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from target_names(target)
            case ast.AnnAssign(target=target):
                yield from target_names(target)


def private_uses(tree: ast.Module, own: frozenset[str]) -> Iterator[str]:
    """Yield each use of a private name that is not ours.

    ``self._name`` may come from any class of ours (``own``); elsewhere the name is defined in the same file.
    """
    here = frozenset(defined_names(tree))
    for node in ast.walk(tree):
        found: list[str] = []
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                found = [name] if name not in own else []
            case ast.Attribute(attr=name):
                found = [name] if name not in here else []
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, ast.Constant(str(name)), *_]):
                found = [name] if name not in here else []
            case ast.Import(names=aliases):
                found = [part for alias in aliases for part in alias.name.split(".")]
            case ast.ImportFrom(module=str(module), names=aliases) if not module.startswith("holdfast"):
                found = [*module.split("."), *(alias.name for alias in aliases)]
        if any(is_private(name) and name not in DOCUMENTED for name in found):
            yield f"{ast.unparse(node)} in line {getattr(node, 'lineno', '?')}"


def test_the_source_uses_no_private_name_of_a_library() -> None:
    trees = {path.relative_to(SOURCE): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    own = frozenset(name for tree in trees.values() for name in defined_names(tree))
    found = [f"{path}: {use}" for path, tree in trees.items() for use in private_uses(tree, own)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("code", "is_found"),
    [
        ("connection._protocol", True), ("self._transport_of_a_base_class", True),
        ("getattr(histogram, '_sum')", True), ("from asyncpg import _version", True),
        ("from pydantic._internal import utils", True), ("import pydantic._internal", True),
        ("pair._replace(first=1)", False), ("thing.__class__", False), ("os._exit(1)", False),
        ("class Own:\n    def __init__(self):\n        self._kept = 1\n\nprint(own._kept)", False),
        ("from holdfast.settings import _split", False),
    ],
)  # fmt: skip
def test_private_names_of_others_are_found_and_our_own_are_not(code: str, is_found: bool) -> None:
    tree = ast.parse(code)
    assert bool(list(private_uses(tree, frozenset(defined_names(tree))))) is is_found
