"""Texts in two languages: a project, a type or a description may be written in both, for buyers of either."""

from __future__ import annotations

import re

_MARKED = re.compile(r"\s+\|\s+")
_PARTS = re.compile(rf"{_MARKED.pattern}|\n+")
_LEAST_SHARE = 4
"""One letter in so many, at least, is of the language that a text in lines has less of."""
_ARABIC = re.compile(r"[\u0600-\u06FF\u0750-\u077F\u08A0-\u08FF\uFB50-\uFDFF\uFE70-\uFEFF]")
_LATIN = re.compile(r"[A-Za-z\u00C0-\u024F]")


def in_language(text: str, code: str) -> str:
    """The parts of a text that are written as that language is; all of it where there are none.

    Lines alone make no second language: the name of a brand may stand in one of its own.
    """
    parts = [(part.strip(), _language(part)) for part in _PARTS.split(text) if part.strip()]
    if not (_is_marked(text) or _is_shared(parts)):
        return text
    own = [part for part, written in parts if written in (code, None)]
    if len(own) == len(parts) or code not in [written for _, written in parts]:
        return text
    return "\n".join(own)


def _is_marked(text: str) -> bool:
    """Whoever writes a bar between two languages means it, however short one of them is."""
    return {"ar", "en"} <= {_language(part) for part in _MARKED.split(text)}


def _is_shared(parts: list[tuple[str, str | None]]) -> bool:
    letters = [sum(_letters(part) for part, written in parts if written == code) for code in ("ar", "en")]
    return min(letters) * _LEAST_SHARE >= sum(letters)


def _letters(part: str) -> int:
    return len(_ARABIC.findall(part)) + len(_LATIN.findall(part))


def _language(part: str) -> str | None:
    """By the letters that it has more of; figures alone are anybody's."""
    arabic, latin = len(_ARABIC.findall(part)), len(_LATIN.findall(part))
    if arabic == latin == 0:
        return None
    return "ar" if arabic > latin else "en"
