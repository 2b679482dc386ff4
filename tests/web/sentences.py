"""Every sentence of the source that a person may be told: read from the code, so that none is forgotten."""

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import holdfast

SOURCE = Path(holdfast.__file__).parent
# Whose sentences no page tells: what operators read on their console, and what only JSON can be told.
NOT_ON_PAGES = (
    "bootstrap", "cli", "clockwork", "demo", "observability", "processes", "settings.py",
    "simulation", "storage/backups", "storage/embedded", "storage/encryption_keys.py",
    "storage/migrations", "storage/schema.py", "storage/standings.py",
    "web/json_items.py", "web/openapi", "web/problem_types.py",
    "web/payments", "web/storefront/bookings.py", "web/storefront/visitors.py", "web/strict_json.py",
)  # fmt: skip
# No refusals: guards against mistakes of our own, and what OpenAPI is told.
NOT_TOLD = frozenset(
    {
        "The database URL names no host.",
        "There is no reference for the number {}.",
        "An exact decimal with at most {} decimals.",
        "May be sent back; ignored.",
        "May be sent back; must be the addressed unit's.",
    }
)
# What stands in a place of a sentence, where it is not a name or number that could be anything.
PIECES = {
    "caller": ("", " for this caller"),
    "free": ("", " The unit is free again."),
    "giver": ("a page", "the feed"),
    "owner": ("project", "unit"),
    "plural": ("s",),
    "state": ('its ETag is "1-2", quotes included', "it does not exist", "held", "archived"),
    "subject": ("The URL's host is", "The name resolves to"),
    "within": ("within one second", "within ten seconds", "within 2.5 seconds"),
    "moment_text(booking.hold_expires_at)": ("2026-11-14T09:30:00.000Z",),
}
ANYTHING = ("7",)
OF_ONE = ("This must have at least 1 character.", "This must have at least 1 element.")
_TRANSLATED = frozenset({"_", "gettext", "ngettext", "N_"})


class Sentence(NamedTuple):
    where: str
    form: str
    """With ``{}`` for what is put in."""
    texts: tuple[str, ...]
    """What it may come to."""


def sentences() -> Iterator[Sentence]:
    yield from (Sentence("web/checking.py", text, (text,)) for text in OF_ONE)
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if not name.startswith(NOT_ON_PAGES):
            yield from _sentences_of(name, ast.parse(path.read_text()))


def _sentences_of(name: str, tree: ast.Module) -> Iterator[Sentence]:
    passed_over = _passed_over(tree)
    for node in ast.walk(tree):
        pieces = None if node in passed_over else _pieces(node)
        if pieces is not None:
            sentence = Sentence(f"{name}:{_line(node)}", *_put_together(pieces))
            if all(map(_is_sentence, sentence.texts)) and sentence.form not in NOT_TOLD:
                yield sentence


def _passed_over(tree: ast.Module) -> set[ast.AST]:
    """Docstrings, pieces of longer texts, and what is translated where it stands."""
    found: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            found.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            found.update(node.values)
        elif isinstance(node, ast.Call) and _called(node) in _TRANSLATED:
            found.update(node.args)
    return found


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _pieces(node: ast.AST) -> list[str | ast.expr] | None:
    if isinstance(node, ast.JoinedStr):
        return [
            piece.value if isinstance(piece, ast.FormattedValue) else str(ast.literal_eval(piece))
            for piece in node.values
        ]
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _pieces_of_template(node.value)
    return None


def _pieces_of_template(text: str) -> list[str | ast.expr]:
    """``{name}`` in a plain text is a place too, if it reads as one."""
    pieces: list[str | ast.expr] = []
    for at, part in enumerate(text.replace("{", "\0{").replace("}", "}\0").split("\0")):
        name = part[1:-1] if at and part.startswith("{") and part.endswith("}") else None
        pieces.append(part if name is None else ast.Name(name or "anything"))
    return pieces


def _put_together(pieces: list[str | ast.expr]) -> tuple[str, tuple[str, ...]]:
    form = "".join(piece if isinstance(piece, str) else "{}" for piece in pieces)
    choices = [(piece,) if isinstance(piece, str) else _choices(piece) for piece in pieces]
    return form, tuple("".join(chosen) for chosen in product(*choices))


def _choices(piece: ast.expr) -> tuple[str, ...]:
    return PIECES.get(ast.unparse(piece), ANYTHING)


def _is_sentence(text: str) -> bool:
    return " " in text.strip() and text.endswith(".") and not text.startswith(" ") and "\n" not in text


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))
