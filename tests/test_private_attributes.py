"""No private name of a library is used: every attribute with a leading underscore is one of our own."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast

SOURCE = Path(holdfast.__file__).parent
# Public in spite of their names: documented methods of named tuples, and os._exit.
DOCUMENTED = frozenset({"_asdict", "_exit", "_field_defaults", "_fields", "_make", "_replace"})


def is_private(name: str) -> bool:
    """``_`` alone is the name by which texts are translated."""
    return name.startswith("_") and name != "_" and not (name.startswith("__") and name.endswith("__"))


def names_of_target(target: ast.expr) -> Iterator[str]:
    """Yield what an assignment defines: a name, or an attribute of ``self`` or ``cls``."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
            yield name
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part in parts:
                yield from names_of_target(part)


def defined_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from names_of_target(target)
            case ast.AnnAssign(target=target):
                yield from names_of_target(target)


def private_uses(tree: ast.Module, own: frozenset[str]) -> Iterator[str]:
    """Yield each use of a private name that is not ours.

    ``self._name`` may come from any class of ours (``own``); elsewhere the name is defined in the same file.
    """
    here = frozenset(defined_names(tree))
    for node in ast.walk(tree):
        names: list[str] = []
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name):
                names = [name] if name not in own else []
            case ast.Attribute(attr=name):
                names = [name] if name not in here else []
            case ast.Call(func=ast.Name(id="getattr" | "setattr"), args=[_, ast.Constant(str(name)), *_]):
                names = [name] if name not in here else []
            case ast.Import(names=aliases):
                names = [part for alias in aliases for part in alias.name.split(".")]
            case ast.ImportFrom(module=str(module), names=aliases) if not module.startswith("holdfast"):
                names = [*module.split("."), *(alias.name for alias in aliases)]
        if any(is_private(name) and name not in DOCUMENTED for name in names):
            yield f"{ast.unparse(node)} in line {getattr(node, 'lineno', '?')}"


def test_the_source_uses_no_private_name_of_a_library() -> None:
    trees = {path.relative_to(SOURCE): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    own = frozenset(name for tree in trees.values() for name in defined_names(tree))
    found = [f"{path}: {use}" for path, tree in trees.items() for use in private_uses(tree, own)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "code",
    [
        "connection._protocol",
        "self._transport_of_a_base_class",
        "getattr(histogram, '_sum')",
        "from asyncpg import _version",
        "from pydantic._internal import _utils",
        "import pydantic._internal",
    ],
)
def test_a_private_name_is_found(code: str) -> None:
    assert list(private_uses(ast.parse(code), frozenset()))


@pytest.mark.parametrize(
    "code",
    [
        "pair._replace(first=1)",
        "thing.__class__",
        "os._exit(1)",
        "class Own:\n    def __init__(self):\n        self._kept = 1\n\ndef look(own):\n    return own._kept",
        "from holdfast.settings import _split",
    ],
)
def test_what_is_public_or_our_own_is_not(code: str) -> None:
    tree = ast.parse(code)
    assert not list(private_uses(tree, frozenset(defined_names(tree))))
