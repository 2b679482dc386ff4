"""What the documents point at exists: files, headings, make targets, commands."""

import re
from pathlib import Path

import click
import pytest

from holdfast.cli import main
from tests.docs.documents import DOCUMENTS, ROOT, anchors, blocks, name_of, prose

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
ELSEWHERE = re.compile(r"^(https?:|mailto:)")
FILE = re.compile(r"^(?:src|tests|docs|benchmarks|requirements|\.ci)/[\w./*-]+$|^[\w/]+/\w+\.py$")
NAME_IN_FILE = re.compile(r"`([\w.]+)` in\s+`((?:src/holdfast/)?[\w/]+\.py)`")
PACKAGE = ROOT / "src" / "holdfast"

per_document = pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)


@per_document
def test_links_lead_somewhere(document: Path) -> None:
    targets = [target for target in LINK.findall(prose(document)) if not ELSEWHERE.match(target)]
    assert [target for target in targets if not _leads_somewhere(document, target)] == []


@per_document
def test_named_files_exist(document: Path) -> None:
    named = [text for text in CODE.findall(prose(document)) if FILE.match(text)]
    assert [text for text in named if not _is_there(text)] == []


@per_document
def test_what_is_named_with_its_file_is_in_the_file(document: Path) -> None:
    for name, path in NAME_IN_FILE.findall(prose(document)):
        source = (ROOT / path if (ROOT / path).exists() else PACKAGE / path).read_text()
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", source), f"{name} in {path}"


@per_document
def test_named_make_targets_exist(document: Path) -> None:
    targets = set(re.findall(r"^(\w+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)\b", _typed_text(document))) <= targets


@per_document
def test_named_commands_exist(document: Path) -> None:
    known = main.list_commands(click.Context(main))
    assert set(re.findall(r"(?:^|/)holdfast ([a-z]+)\b", _typed_text(document), re.MULTILINE)) <= set(known)


def _leads_somewhere(document: Path, target: str) -> bool:
    path, _, fragment = target.partition("#")
    found = (document.parent / path).resolve() if path else document
    return found.exists() and (not fragment or fragment in anchors(found))


def _is_there(text: str) -> bool:
    return any(True for folder in (ROOT, PACKAGE) for _ in folder.glob(text.rstrip("/")))


def _typed_text(document: Path) -> str:
    """Everything that stands as code."""
    shell = (block.text for block in blocks(document) if block.language in ("bash", "sh"))
    return "\n".join([*CODE.findall(prose(document)), *shell])
