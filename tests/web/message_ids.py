"""Every message id of the source that a person may be told: read from the code, so that none is forgotten."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import holdfast

SOURCE = Path(holdfast.__file__).parent
# Whose sentences no page tells: what operators read on their console, and what only JSON can be told.
NOT_ON_PAGES = (
    "background", "cli", "demo", "observability", "server", "settings.py", "simulation",
    "storage/backup", "storage/embedded", "storage/migrations", "storage/recovery.py", "storage/schema.py",
    "storage/secrets.py",
    "web/api/backoffice/projects.py", "web/api/backoffice/sellers.py", "web/api/backoffice/units.py",
    "web/api/models.py", "web/api/payments", "web/api/storefront", "web/api/surfaces.py", "web/json.py",
    "web/openapi", "web/problems.py", "web/visitors.py", "wiring.py",
)  # fmt: skip
# No messages: guards against mistakes of our own, and what OpenAPI is told.
NOT_TOLD = (
    "The database URL names no host.",
    "The database refused the change ({}).",
    "There is no reference for the number {}.",
    "Another server takes writes now.",
    "An exact decimal with at most {} decimals.",
    "PostgreSQL gave the rows in another order than that of the keys.",
    "Send the token that came with the hold as `Authorization: Bearer <token>`.",
    "Printable text with no space at either end. Null: not known.",
    "0 is the ground floor. Null: not known.",
    "Counted from 1 on each floor. Null: not known.",
    "May be sent back; ignored.",
    "May be sent back; must be the addressed unit's.",
)
_TRANSLATED = frozenset({"_", "gettext", "ngettext", "N_"})
# What the OpenAPI document says of a field, a parameter or an operation.
_DESCRIBING = {
    "Meta", "Field", "WithJsonSchema", "Parameter", "one_of", "flag", "time_parameter", "id_parameter",
    "text_parameter", "feed_cursor", "cursor_parameter", "get", "put", "post", "patch", "delete", "operation",
    "ApiRoutes",
}  # fmt: skip


class Found(NamedTuple):
    where: str
    text: str
    """An f-string has ``{}`` for what is put in: no catalogue can have it, it should be a ``Message``."""


class Call(NamedTuple):
    """A ``Message`` that is made with literal parameters."""

    where: str
    ids: list[str]
    """The literals that its id may be; none where it comes from elsewhere."""
    parameters: set[str]


def sentences() -> Iterator[Found]:
    for name, tree in _modules():
        passed_over = _passed_over(tree)
        for node in ast.walk(tree):
            text = None if node in passed_over else _text(node)
            if text is not None and _is_sentence(text) and text not in NOT_TOLD:
                yield Found(_where(name, node), text)


def message_calls() -> Iterator[Call]:
    for name, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and _called(node) == "Message":
                message, parameters = node.args
                if isinstance(parameters, ast.Dict):
                    names = {str(key.value) for key in parameters.keys if isinstance(key, ast.Constant)}
                    yield Call(_where(name, node), list(_literals(message, tree, node.lineno)), names)


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(NOT_ON_PAGES):
            yield name, ast.parse(path.read_text())


def _passed_over(tree: ast.Module) -> set[ast.AST]:
    """Docstrings, pieces of longer texts, descriptions, and what is translated where it stands."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            found.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            found.update(node.values)
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
            found.update(ast.walk(node.slice))
        elif isinstance(node, ast.Call) and _called(node) in _TRANSLATED:
            found.update(node.args)
        elif isinstance(node, ast.Call) and _called(node) in _DESCRIBING:
            found.update(ast.walk(node))
    return found


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        return "".join(
            "{}" if isinstance(piece, ast.FormattedValue) else str(ast.literal_eval(piece))
            for piece in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


def _is_sentence(text: str) -> bool:
    return " " in text.strip() and text.endswith(".") and not text.startswith(" ") and "\n" not in text


def _literals(node: ast.expr, tree: ast.Module, line: int) -> Iterator[str]:
    """The texts that an expression may be, where they stand in the same module before it."""
    if isinstance(node, ast.Constant):
        yield str(node.value)
    elif isinstance(node, ast.IfExp):
        yield from _literals(node.body, tree, line)
        yield from _literals(node.orelse, tree, line)
    elif isinstance(node, ast.Name):
        assigned = [one for one in ast.walk(tree) if isinstance(one, ast.Assign) and one.lineno < line]
        given = [one for one in assigned if node.id in map(ast.unparse, one.targets)]
        if given:
            last = max(given, key=lambda one: one.lineno)
            yield from _literals(last.value, tree, last.lineno)


def _where(name: str, node: ast.AST) -> str:
    return f"{name}:{getattr(node, 'lineno', 0)}"
