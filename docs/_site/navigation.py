"""The navigation of the site, from the links that its pages have for every reader.

A ``toctree`` would stand there as a block of code where the files are read as files. So none is written: the
lists of the first page are the navigation, with its headings, and what lies below a folder's README stands
under that one, in the order of its links.
"""

import posixpath
import re
from collections.abc import Iterator

from sphinx.application import Sphinx

FIRST = "docs/index"
OF_FOLDERS = ("docs/decisions/README", "benchmarks/README", "sdk/README")

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_LISTED = re.compile(r"^(?:-|\d+\.) +\[([^\]]+)\]\(([^)#:\s]+)\.md\)", re.MULTILINE)
_LINKED = re.compile(r"\[([^\]]+)\]\(([^)#:\s]+)\.md\)")


def add_navigation(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == FIRST:
        source[0] += "".join(_of_lists(source[0]))
    elif docname in OF_FOLDERS:
        first = app.env.doc2path(FIRST).read_text(encoding="utf-8")
        source[0] += _of_folder(docname, source[0], set(_pages(FIRST, first)))


def _of_lists(text: str) -> Iterator[str]:
    _, *parts = _HEADING.split(text)
    for caption, part in zip(parts[::2], parts[1::2], strict=True):
        entries = [f"{title} <{target}>" for title, target in _LISTED.findall(part)]
        yield _tree([f":caption: {caption}"], entries) if entries else ""


def _of_folder(docname: str, text: str, placed: set[str]) -> str:
    """A page has one place, and the first page decides."""
    folder = f"{posixpath.dirname(docname)}/"
    below = [page for page in _pages(docname, text) if page.startswith(folder) and page not in placed]
    return _tree([], [f"/{page}" for page in below])


def _pages(docname: str, text: str) -> dict[str, None]:
    """The pages that this one links to, once each."""
    folder = posixpath.dirname(docname)
    targets = (posixpath.normpath(posixpath.join(folder, target)) for _, target in _LINKED.findall(text))
    return dict.fromkeys(targets)


def _tree(options: list[str], entries: list[str]) -> str:
    return "\n".join(["\n\n```{toctree}", ":hidden:", *options, "", *entries, "```\n"]) if entries else ""


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", add_navigation)
    return {"parallel_read_safe": True}
