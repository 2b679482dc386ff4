"""What the documents name exists: commands with their options, files, headings, make targets.

Every command that a document shows is typed by test_examples.py; or it is known why not, and checked here.
"""

import re
import shlex
import subprocess
from importlib import import_module
from pathlib import Path

import pytest

from holdfast.settings import Settings
from tests.docs import commands
from tests.docs.documents import DOCUMENTS, OF_OTHER_FOLDERS, ROOT, anchors, blocks, name_of, prose
from tests.support.make import make
from tests.support.server import WEBHOOKS

UNTYPED = commands.untyped_commands()
LEFT_OPEN = re.compile(r"\.\.\.$|…|^\$")
"""Where the reader's own value belongs."""
HOLDFAST = re.compile(r"\.venv/bin/holdfast ([^&]*)")
FOLDER = re.compile(r"^(\./)?(sdk|examples)/")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
ELSEWHERE = re.compile(r"^(https?:|mailto:)")
FILE = re.compile(r"^(?:src|tests|docs|benchmarks|requirements|\.ci)/[\w./*-]+$|^[\w/]+/\w+\.py$")
NAME_IN_FILE = re.compile(r"`([\w.]+)` in\s+`((?:src/holdfast/)?[\w/]+\.py)`")
PACKAGE = ROOT / "src" / "holdfast"


def test_the_commands_that_are_not_typed_are_those_on_the_list_with_a_reason() -> None:
    assert set(commands.NOT_TYPED) == UNTYPED


def test_the_first_change_finds_its_word_in_one_template_and_one_catalogue() -> None:
    sources = [path for path in (PACKAGE / "web").rglob("*") if path.suffix in (".html", ".po", ".py")]
    found = {path.name for path in sources if '"Show more"' in path.read_text()}
    assert found == {"shop_list.html", "storefront.po"}


@pytest.mark.parametrize("document", [*DOCUMENTS, *OF_OTHER_FOLDERS], ids=name_of)
def test_a_document_has_blocks_of_a_language_and_names_commands_that_exist(document: Path) -> None:
    """The reader goes through README.md and docs; elsewhere a `bash` block would be typed by nobody."""
    found = blocks(document)
    assert [block.text for block in found if not block.language] == []
    assert document in DOCUMENTS or [block.text for block in found if block.language == "bash"] == []
    for text in commands.inline_commands(document):
        commands.check_named(text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere_and_named_files_and_targets_exist(document: Path) -> None:
    text = prose(document)
    targets = [target for target in LINK.findall(text) if not ELSEWHERE.match(target)]
    assert [target for target in targets if not _leads_somewhere(document, target)] == []
    code = CODE.findall(text)
    assert [path for path in code if FILE.match(path) and not _is_there(path)] == []
    for name, path in NAME_IN_FILE.findall(text):
        source = (ROOT / path if (ROOT / path).exists() else PACKAGE / path).read_text()
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", source), f"{name} in {path}"
    shell = [block.text for block in blocks(document) if block.language in ("bash", "sh")]
    made = set(re.findall(r"\bmake ([a-z]+)\b", "\n".join([*code, *shell])))
    assert made <= set(re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))


def _leads_somewhere(document: Path, target: str) -> bool:
    path, _, fragment = target.partition("#")
    found = (document.parent / path).resolve() if path else document
    return found.exists() and (not fragment or fragment in anchors(found))


def _is_there(text: str) -> bool:
    return any(True for folder in (ROOT, PACKAGE) for _ in folder.glob(text.rstrip("/")))


@pytest.mark.parametrize("command", sorted(UNTYPED))
def test_what_is_not_typed_could_be(command: str) -> None:
    variables, words = commands.words_of(command)
    known = {f"HOLDFAST_{name.upper()}" for name in Settings.model_fields}
    settings = {name: value for name, value in variables.items() if name in known}
    if not any(LEFT_OPEN.search(value) for value in settings.values()):
        Settings.from_environment({**WEBHOOKS, **settings})
    for found in HOLDFAST.findall(re.sub(r"\$\([^)]*\)", "today", command)):
        commands.check_complete(shlex.split(found))
    for path in (word for word in words if FOLDER.match(word)):
        assert (ROOT / path).exists()
    if words[:1] == ["make"]:
        done = make("--dry-run", *words[1:])
        assert done.returncode == 0, done.stderr
        assert done.stdout
    elif "--factory" in words:
        module, _, name = words[words.index("--factory") + 1].partition(":")
        assert callable(getattr(import_module(module), name))
    elif words:
        subprocess.run(["bash", "-n", "-c", command], check=True, timeout=60)
