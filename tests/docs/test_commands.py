"""Every command that a document shows is typed by a test; or it is known why not, and checked otherwise."""

import re
import subprocess
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.settings import Settings
from tests.docs.commands import (
    NOT_TYPED,
    Shown,
    check_complete,
    check_named,
    inline_commands,
    untyped_commands,
    words_of,
)
from tests.docs.documents import DOCUMENTS, OF_OTHER_FOLDERS, ROOT, blocks, name_of
from tests.support.make import make

EVERYWHERE = [*DOCUMENTS, *OF_OTHER_FOLDERS]
UNTYPED = untyped_commands()
LEFT_OPEN = re.compile(r"\.\.\.$|…|^\$")
"""Where the reader's own value belongs."""
GIVEN = {"HOLDFAST_ENCRYPTION_KEYS": "bm90IGEgc2VjcmV0LCBmb3IgdGVzdHMgYWxvbmUgISE="}

per_document = pytest.mark.parametrize("document", EVERYWHERE, ids=name_of)
per_untyped = pytest.mark.parametrize("shown", UNTYPED, ids=lambda shown: f"{shown.document}: {shown.text}")


def test_a_command_that_is_not_typed_is_on_the_list_with_its_reason() -> None:
    assert sorted({shown.text for shown in UNTYPED} - set(NOT_TYPED)) == []


def test_the_list_has_nothing_that_no_document_shows() -> None:
    assert sorted(set(NOT_TYPED) - {shown.text for shown in UNTYPED}) == []


@per_document
def test_every_block_says_what_it_is(document: Path) -> None:
    assert [block.text for block in blocks(document) if not block.language] == []


@per_document
def test_blocks_to_be_typed_stand_where_they_are_typed(document: Path) -> None:
    """The reader goes through README.md and docs; elsewhere a `bash` block would be typed by nobody."""
    typed = [block.text for block in blocks(document) if block.language == "bash"]
    assert document in DOCUMENTS or typed == []


@per_document
def test_commands_named_in_a_sentence_exist_with_their_options(document: Path) -> None:
    for text in inline_commands(document):
        check_named(text)


@per_untyped
def test_what_is_not_typed_could_be(shown: Shown) -> None:
    variables, words = words_of(shown.text)
    settings = {name: value for name, value in variables.items() if name in _of_holdfast()}
    if not any(LEFT_OPEN.search(value) for value in settings.values()):
        Settings.from_environment({**GIVEN, **settings})
    if words:
        CHECKS[Path(words[0]).name](words)


def _of_holdfast() -> set[str]:
    return {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}


def _made(words: list[str]) -> None:
    """Make knows the target, and what it would do."""
    done = make("--dry-run", *words[1:])
    assert done.returncode == 0, done.stderr
    assert done.stdout


def _served(words: list[str]) -> None:
    module, _, name = words[words.index("--factory") + 1].partition(":")
    assert callable(getattr(import_module(module), name))


def _installed(words: list[str]) -> None:
    assert words[1] == "install"
    assert all((ROOT / word / "pyproject.toml").exists() for word in words[2:])


def _started(words: list[str]) -> None:
    assert all((ROOT / word).is_file() for word in words[1:])


def _of_a_crontab(words: list[str]) -> None:
    line = re.sub(r"\$\([^)]*\)", "today", " ".join(words[5:]))
    ours = [part.split()[1:] for part in line.split(" && ") if part.startswith(".venv/bin/holdfast ")]
    assert ours
    for part in ours:
        check_complete(part)


def _parsed_by_the_shell(words: list[str]) -> None:
    subprocess.run(["bash", "-n", "-c", " ".join(words)], check=True, timeout=30)


CHECKS: dict[str, Callable[[list[str]], None]] = {
    "uvicorn": _served,
    "make": _made,
    "holdfast": lambda words: check_complete(words[1:]),
    "pip": _installed,
    "python3": _started,
    "node": _started,
    "printf": _parsed_by_the_shell,
    "0": _of_a_crontab,
}
