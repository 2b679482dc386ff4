"""Why something was refused or has failed, in the person's language.

The sentences are made where the refusal is, in English, and some are kept so in the log. What they are made
of stands in the catalogue ``said.po`` of each language: its texts are forms, ``%(name)s`` for a value. A
value that is itself a word (a status, an action) stands there too, with the name of its place as its context.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import cache
from typing import NamedTuple

from holdfast.domain.refusals import Fault, InvalidInput, Refusal
from holdfast.web.html.language import Language
from holdfast.web.html.words import SOURCE, catalogues, read_catalogue, words

_FAULTS_TOLD = 3
_PLACE = re.compile(r"%\((\w+)\)s")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
# Codes and addresses are read from left to right, also in the midst of Arabic.
_ISOLATED = "\N{FIRST STRONG ISOLATE}{}\N{POP DIRECTIONAL ISOLATE}"


class _Form(NamedTuple):
    text: str
    matches: re.Pattern[str]


def said(refusal: Refusal, language: Language) -> str:
    if language.code == SOURCE or not isinstance(refusal, InvalidInput):
        return said_text(str(refusal), language)
    told = [_fault_with_place(fault, language) for fault in refusal.faults[:_FAULTS_TOLD]]
    more = len(refusal.faults) - _FAULTS_TOLD
    return " ".join(told + ([said_text(f"And {more} more.", language)] if more > 0 else []))


def said_fault(fault: Fault, language: Language) -> str:
    """For beside the field, so without its place."""
    return said_text(fault.message, language)


def said_text(text: str, language: Language) -> str:
    """Of a refusal, or why an attempt failed or a delivery ended; what has no form is left as it is."""
    if language.code == SOURCE:
        return text
    for form in _forms(language.code):
        found = form.matches.fullmatch(text)
        if found is not None:
            values = {name: _value(name, value, language) for name, value in found.groupdict().items()}
            return language.gettext(form.text, **values)
    return text


def _fault_with_place(fault: Fault, language: Language) -> str:
    return fault._replace(message=said_fault(fault, language)).sentence()


@cache
def _forms(code: str) -> tuple[_Form, ...]:
    """The most particular first: of two that fit, the one with more words of its own."""
    texts = [
        message.id
        for path in catalogues(code)
        if path.stem == "said"
        for message in read_catalogue(path, code)
        if isinstance(message.id, str) and message.id and not message.context
    ]
    return tuple(_form(text) for text in sorted(texts, key=lambda text: -len(_PLACE.sub("", text))))


def _form(text: str) -> _Form:
    literals_and_names = _PLACE.split(text)
    parts = (f"(?P<{part}>.+?)" if at % 2 else re.escape(part) for at, part in enumerate(literals_and_names))
    return _Form(text, re.compile("".join(parts), re.DOTALL))


def _value(name: str, value: str, language: Language) -> str:
    known = words(language.code).pgettext(name, value)
    if known != value:
        return str(known)
    if name == "moment":
        return language.moment(datetime.fromisoformat(value))
    return language.plain(value) if _NUMBER.fullmatch(value) else _ISOLATED.format(value)
