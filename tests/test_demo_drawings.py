"""The drawings of the demo are small SVG files that need nothing else."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from holdfast.web.pages.templates import STATIC

LARGEST_BYTES = 20 * 1024


@pytest.mark.parametrize("file", sorted((STATIC / "demo").glob("*.svg")), ids=lambda file: file.name)
def test_a_drawing_is_small_and_runs_no_script(file: Path) -> None:
    drawing = file.read_bytes()
    assert len(drawing) <= LARGEST_BYTES
    assert ElementTree.fromstring(drawing).tag == "{http://www.w3.org/2000/svg}svg"
    assert b"<script" not in drawing
