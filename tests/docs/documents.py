"""The documents as their readers find them: blocks, links, tables, maps of the tree."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
WEBHOOKS_GUIDE = ROOT / "docs" / "webhooks-guide.md"
OPERATIONS = ROOT / "docs" / "operations.md"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
README = ROOT / "README.md"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
OF_OTHER_FOLDERS = sorted(
    path for folder in ("sdk", "examples", "benchmarks") for path in (ROOT / folder).rglob("*.md")
)

_BLOCK = re.compile(r"(?ms)^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^( *)(\S+)")


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    start: int
    end: int


def name_of(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


def blocks(document: Path) -> list[Block]:
    return [
        Block(found["language"], dedent(found["text"]), found.start(), found.end())
        for found in _BLOCK.finditer(document.read_text())
    ]


def block_beginning(document: Path, language: str, beginning: str) -> str:
    """The text of the one block that begins so."""
    found = (block for block in blocks(document) if block.language == language)
    (block,) = (block for block in found if block.text.startswith(beginning))
    return block.text


def prose(document: Path) -> str:
    """Everything but the blocks."""
    return _BLOCK.sub("", document.read_text())


def anchors(document: Path) -> set[str]:
    """The fragments that lead to the headings, as GitHub makes them."""
    titles = (found.lower() for found in _HEADING.findall(prose(document)))
    return {re.sub(r"[^\w\- ]", "", title).replace(" ", "-") for title in titles}


def table(document: Path, first_heading: str) -> list[list[str]]:
    """The rows of the table whose first column has this heading, without code marks."""
    lines = document.read_text().splitlines()
    start = next(at for at, line in enumerate(lines) if _cells(line)[:1] == [first_heading])
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(_cells(line))
    return rows


def _cells(line: str) -> list[str]:
    cells = line.strip("|").split("|") if line.startswith("|") else []
    return [cell.strip().replace("`", "") for cell in cells]


def map_paths(document: Path) -> list[Path]:
    """The paths in the document's map of the tree; an entry lies in the last folder that is less indented."""
    marker = document.read_text().index("<!-- tree -->")
    tree = next(block for block in blocks(document) if block.start > marker)
    return list(_paths_in(tree.text))


def _paths_in(text: str) -> Iterator[Path]:
    above: list[tuple[int, Path]] = [(-1, ROOT)]
    for line in text.splitlines():
        found = _ENTRY.match(line)
        if found is None:
            continue
        depth, name = len(found[1]), found[2]
        while above[-1][0] >= depth:
            above.pop()
        path = above[-1][1] / name
        above.append((depth, path))
        yield path
