"""Every page begins with what the reader can do after it."""

import re

from tests.docs.documents import ROOT

OPENING = re.compile(r"# .+\n\nAfter reading (this page|these pages), you can ")
OTHER_PAGES = """
    CONTRIBUTING.md SECURITY.md benchmarks/README.md docs/decisions/README.md examples/README.md sdk/README.md
    sdk/python/README.md
"""


def test_every_page_begins_with_what_the_reader_can_do_after_it() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), *(ROOT / name for name in OTHER_PAGES.split())]
    assert [str(page) for page in pages if not OPENING.match(page.read_text(encoding="utf-8"))] == []
