"""The words of other languages than English, as catalogues of gettext; read as they stand, never compiled."""

from __future__ import annotations

from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations

SOURCE = "en"
_HERE = Path(__file__).parent


def catalogues(code: str) -> list[Path]:
    return sorted((_HERE / code).glob("*.po"))


@cache
def words(code: str) -> NullTranslations:
    """All the catalogues of a language together; the source language needs none."""
    if code == SOURCE:
        return NullTranslations()
    first, *others = [_translations(path, code) for path in catalogues(code)]
    for other in others:
        first.add(other, merge=True)
    return first


def read_catalogue(path: Path, code: str) -> Catalog:
    with path.open("rb") as file:
        return read_po(file, locale=code, abort_invalid=True)


def _translations(path: Path, code: str) -> Translations:
    compiled = BytesIO()
    write_mo(compiled, read_catalogue(path, code))
    compiled.seek(0)
    return Translations(compiled)
