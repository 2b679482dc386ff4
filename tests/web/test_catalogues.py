"""The catalogues: nothing that a person is told is left in English, and nothing is kept that nobody says."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from babel.messages.catalog import Message
from babel.messages.extract import extract_from_file

from holdfast.domain.addresses import BLOCKED_RANGES
from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import SIGN, BookingAction
from holdfast.domain.errors import DomainError
from holdfast.domain.holds import ADDRESS, NETWORK, VISITOR
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.transitions import Action
from holdfast.web.pages.i18n import catalogues, language_of, read_catalogue, translate_error
from holdfast.web.pages.templates import WEB
from tests.web.message_ids import message_calls, sentences

KEYWORDS = {"_": None, "gettext": None, "N_": None, "ngettext": (1, 2)}
PLURAL_FORMS = 6
# Its texts are messages of the domain; those of the other catalogues stand on pages.
MESSAGES = "messages"
_PLACE = re.compile(r"%\((\w+)\)s")
_COUNT = {"num"}
ARABIC = language_of("ar", "latn", "Asia/Riyadh")
WORDS = {
    "action": {*Action, SIGN, *BookingAction},
    "address_kind": {*BLOCKED_RANGES, "an address with a zone"},
    "booking_status": {*BookingStatus},
    "limit": {"16 KiB", "1 MiB", "16 MiB", "32 MiB"},
    "new_status": {*LOCKED},
    "unit_status": {*Status, "archived"},
    "who": {VISITOR, ADDRESS, NETWORK},
}
"""The values of parameters that are words."""


class Said(NamedTuple):
    where: str
    text: str
    plural: str | None


@cache
def texts_of_pages() -> list[Said]:
    found = [said for path in sorted(WEB.rglob("*.html")) for said in _in_template(path)]
    return found + [said for path in sorted(WEB.rglob("*.py")) for said in _in_module(path)]


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


@cache
def translations() -> list[tuple[str, Message]]:
    """Every message with the name of its catalogue."""
    paths = catalogues("ar")
    return [(path.stem, message) for path in paths for message in read_catalogue(path, "ar") if message.id]


def forms_of(text: object) -> tuple[str, ...]:
    return text if isinstance(text, tuple) else (str(text),)


def places(text: str) -> set[str]:
    return set(_PLACE.findall(text))


def test_every_text_of_a_page_is_translated() -> None:
    known = {forms_of(message.id): message for _, message in translations() if not message.context}
    by_one = {forms[0]: message for forms, message in known.items()}
    assert [said for said in texts_of_pages() if said.text not in by_one] == []
    plurals = [said for said in texts_of_pages() if said.plural]
    assert [said for said in plurals if (said.text, said.plural) not in known] == []


def test_every_translation_is_complete() -> None:
    """With a form for each number that Arabic tells apart, and none left empty or marked as doubtful."""
    for name, message in translations():
        forms = forms_of(message.string)
        assert len(forms) == (PLURAL_FORMS if message.pluralizable else 1), f"{name}: {message.id}"
        assert all(forms), f"{name}: {message.id}"
        assert not message.fuzzy, f"{name}: {message.id}"


def test_every_translation_has_the_places_of_its_text_and_can_be_filled_in() -> None:
    """A form for one or two may leave the number out: Arabic says it in the word.

    A percent sign stands for itself in a text without places, and twice in one that has some.
    """
    for name, message in translations():
        wanted = set.union(*map(places, forms_of(message.id)))
        needed = wanted - _COUNT if message.pluralizable else wanted
        for form in forms_of(message.string):
            assert needed <= places(form) <= wanted, f"{name}: {message.id}"
        for form in (*forms_of(message.id), *forms_of(message.string)):
            values = dict.fromkeys(places(form), "7")
            assert not values or "%(" not in form % values, f"{name}: {message.id}"


def test_no_word_is_markup() -> None:
    """Words go into pages and attributes as they stand; only what is put into their places is escaped."""
    for name, message in translations():
        for form in (*forms_of(message.id), *forms_of(message.string)):
            assert name == MESSAGES or not set('<>&"') & set(form), f"{name}: {message.id}"


def test_one_text_has_one_translation() -> None:
    """The catalogues of all areas are read as one."""
    found = defaultdict(set)
    for _, message in translations():
        found[message.context, forms_of(message.id)[0]].add(forms_of(message.string))
    assert {key: said for key, said in found.items() if len(said) > 1} == {}


def test_no_translation_is_left_of_a_text_that_is_gone() -> None:
    said = {one.text for one in texts_of_pages()}
    of_pages = [message for name, message in translations() if name != MESSAGES]
    assert [message.id for message in of_pages if forms_of(message.id)[0] not in said] == []
    for path in catalogues("ar"):
        assert not read_catalogue(path, "ar").obsolete, path.name


def test_every_message_and_every_word_of_one_has_its_arabic_and_none_is_left_over() -> None:
    found = list(sentences())
    assert [one for one in found if "{" in one.text] == []
    told: set[tuple[str | None, str]] = {(None, one.text) for one in found}
    told |= {(context, word) for context, words in WORDS.items() for word in words}
    assert {(message.context, message.id) for name, message in translations() if name == MESSAGES} == told


def test_every_message_has_a_parameter_for_each_place() -> None:
    calls = list(message_calls())
    wrong = [one for one in calls if any(places(text) != one.parameters for text in one.ids)]
    assert wrong == []
    elsewhere = {one.where.partition(":")[0] for one in calls if not one.ids}
    assert elsewhere == {"domain/errors.py", "web/errors.py", "webhooks/causes.py"}


def refusal_kinds(kind: type[DomainError] = DomainError) -> Iterator[type[DomainError]]:
    for under in kind.__subclasses__():
        yield under
        yield from refusal_kinds(under)


def made_of_nothing(kind: type[DomainError]) -> DomainError | None:
    try:
        return kind()
    except (AttributeError, TypeError):
        return None


def test_a_refusal_of_every_kind_is_told_in_arabic() -> None:
    """A kind whose message came from afar would be missed by reading the source."""
    defaults = [refusal for refusal in map(made_of_nothing, refusal_kinds()) if refusal is not None]
    names = {type(refusal).__name__ for refusal in defaults}
    assert names >= {"NoCredentials", "DatabaseUnavailable", "UnknownRoute"}
    for refusal in defaults:
        assert re.search("[\u0621-\u064a]", translate_error(refusal, ARABIC)), refusal
