"""What a PDF says, read back as programs read it."""

import re
from io import BytesIO
from typing import Any

from pypdf import PdfReader

_DIRECTIONS = dict.fromkeys(map(ord, "\u200e\u200f\u202a\u202b\u202c\u2066\u2067\u2068\u2069"))
_MARKS = re.compile("[\u064b-\u0652\u0640]")


def read(pdf: bytes) -> PdfReader:
    return PdfReader(BytesIO(pdf))


def text_of(pdf: bytes) -> str:
    """All pages; spaces are one each, and what only steers the direction is left out."""
    pages = "\n".join(page.extract_text() for page in read(pdf).pages)
    text = re.sub(r"\s+", " ", pages.translate(_DIRECTIONS))
    # Some pairs of figure and comma stand so close that the reader takes them for two words.
    return re.sub(r"(?<=\d) (?=[,.]\d)", "", text)


def letters_of(text: str) -> list[str]:
    """What is left of Arabic when order, joins and vowel signs are not looked at."""
    return sorted(_MARKS.sub("", text).replace(" ", ""))


def fonts_on_pages(pdf: bytes) -> list[Any]:
    """Those of each page; one that is on two of them is there twice."""
    pages: list[Any] = list(read(pdf).pages)
    return [font.get_object() for page in pages for font in page["/Resources"].get("/Font", {}).values()]


def fonts_of(pdf: bytes) -> set[str]:
    """The names of all fonts, without the letters that mark a part of one."""
    return {str(font["/BaseFont"]).lstrip("/").partition("+")[2] for font in fonts_on_pages(pdf)}


def embedded_fonts(pdf: bytes) -> int:
    described = [font["/DescendantFonts"][0].get_object() for font in fonts_on_pages(pdf)]
    return sum("/FontFile2" in font["/FontDescriptor"].get_object() for font in described)
