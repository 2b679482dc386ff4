"""The words of the pages: nothing is left in English, and nothing is kept that no page says."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from babel.messages.catalog import Message
from babel.messages.extract import extract_from_file

from holdfast.web.pages.i18n import catalogues, read_catalogue
from holdfast.web.pages.templates import WEB

KEYWORDS = {"_": None, "gettext": None, "N_": None, "ngettext": (1, 2)}
LANGUAGES = ("ar",)
PLURAL_FORMS = {"ar": 6}
# Its texts are messages of the domain, which `test_translation` holds against the source.
MESSAGES = "messages"
_PLACE = re.compile(r"%\((\w+)\)s")
_COUNT = {"num"}


class Said(NamedTuple):
    where: str
    text: str
    plural: str | None


def said_by_pages() -> Iterator[Said]:
    for path in sorted(WEB.rglob("*.html")):
        yield from _in_template(path)
    for path in sorted(WEB.rglob("*.py")):
        yield from _in_module(path)


def _in_template(path: Path) -> Iterator[Said]:
    for line, text, _, _ in extract_from_file("jinja2.ext:babel_extract", path, keywords=KEYWORDS):
        one, plural = (text[0], text[1]) if isinstance(text, tuple) else (text, None)
        yield Said(f"{path.relative_to(WEB)}:{line}", one, plural)


def _in_module(path: Path) -> Iterator[Said]:
    """By hand: Babel does not look into f-strings."""
    for call in ast.walk(ast.parse(path.read_text())):
        if isinstance(call, ast.Call) and _name(call.func) in KEYWORDS and call.args:
            texts = [str(text.value) for text in call.args[:2] if isinstance(text, ast.Constant)]
            if texts:
                plural = texts[1] if _name(call.func) == "ngettext" else None
                yield Said(f"{path.relative_to(WEB)}:{call.lineno}", texts[0], plural)


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def messages(code: str, *, domain: bool = True) -> Iterator[tuple[str, Message]]:
    for path in catalogues(code):
        for message in read_catalogue(path, code):
            if message.id and (domain or path.stem != MESSAGES):
                yield path.name, message


def forms_of(text: object) -> tuple[str, ...]:
    return text if isinstance(text, tuple) else (str(text),)


def places(text: str) -> set[str]:
    return set(_PLACE.findall(text))


@pytest.fixture(scope="module")
def pages() -> list[Said]:
    return list(said_by_pages())


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_text_of_a_page_is_translated(code: str, pages: list[Said]) -> None:
    known = {forms_of(message.id): message for _, message in messages(code) if not message.context}
    by_one = {forms[0]: message for forms, message in known.items()}
    missing = [said for said in pages if said.text not in by_one]
    assert missing == []
    uncounted = [said for said in pages if said.plural and (said.text, said.plural) not in known]
    assert uncounted == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_translation_is_complete(code: str) -> None:
    """With a form for each number the language tells apart, and none left empty or marked as doubtful."""
    for name, message in messages(code):
        forms = forms_of(message.string)
        expected = PLURAL_FORMS[code] if message.pluralizable else 1
        assert len(forms) == expected, f"{name}: {message.id}"
        assert all(forms), f"{name}: {message.id}"
        assert not message.fuzzy, f"{name}: {message.id}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_translation_has_the_places_of_its_text(code: str) -> None:
    """A form for one or two may leave the number out: Arabic says it in the word."""
    for name, message in messages(code):
        wanted = set.union(*map(places, forms_of(message.id)))
        needed = wanted - _COUNT if message.pluralizable else wanted
        for form in forms_of(message.string):
            assert needed <= places(form) <= wanted, f"{name}: {message.id}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_translation_can_be_filled_in(code: str) -> None:
    """A percent sign stands for itself in a text without places, and twice in one that has some."""
    for name, message in messages(code):
        for form in (*forms_of(message.id), *forms_of(message.string)):
            values = dict.fromkeys(places(form), "7")
            assert not values or "%(" not in form % values, f"{name}: {message.id}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_word_is_markup(code: str) -> None:
    """Words go into pages and attributes as they stand; only what is put into their places is escaped."""
    for name, message in messages(code, domain=False):
        for form in (*forms_of(message.id), *forms_of(message.string)):
            assert not set('<>&"') & set(form), f"{name}: {message.id}"


@pytest.mark.parametrize("code", LANGUAGES)
def test_one_text_has_one_translation(code: str) -> None:
    """The catalogues of all areas are read as one."""
    found = defaultdict(set)
    for name, message in messages(code):
        found[message.context, forms_of(message.id)[0]].add((forms_of(message.string), name))
    differing = {key: said for key, said in found.items() if len({strings for strings, _ in said}) > 1}
    assert differing == {}


@pytest.mark.parametrize("code", LANGUAGES)
def test_no_translation_is_left_of_a_text_that_is_gone(code: str, pages: list[Said]) -> None:
    said = {one.text for one in pages}
    assert [
        (name, message.id)
        for name, message in messages(code, domain=False)
        if forms_of(message.id)[0] not in said
    ] == []
    for path in catalogues(code):
        assert not read_catalogue(path, code).obsolete, path.name
