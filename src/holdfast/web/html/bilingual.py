"""Texts in two languages: a project, a type or a description may be written in both, for buyers of either."""

from __future__ import annotations

import re

SEPARATOR = " | "

_PARTS = re.compile(r"\s+\|\s+|\n+")
_ARABIC = re.compile(r"[\u0600-\u06FF\u0750-\u077F\u08A0-\u08FF\uFB50-\uFDFF\uFE70-\uFEFF]")
_LATIN = re.compile(r"[A-Za-z\u00C0-\u024F]")


def in_language(text: str, code: str) -> str:
    """The parts of a text that are written as that language is; all of it where there are none."""
    parts = [(part.strip(), _language(part)) for part in _PARTS.split(text) if part.strip()]
    own = [part for part, written in parts if written in (code, None)]
    if len(own) == len(parts) or code not in [written for _, written in parts]:
        return text
    return "\n".join(own)


def _language(part: str) -> str | None:
    """By the letters that it has more of; figures alone are anybody's."""
    arabic, latin = len(_ARABIC.findall(part)), len(_LATIN.findall(part))
    if arabic == latin == 0:
        return None
    return "ar" if arabic > latin else "en"
