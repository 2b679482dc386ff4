"""Messages of the domain in the person's language.

The catalogue ``messages.po`` of a language has a text for each message id. A parameter that is a word (a
status, an action) stands there too, with the parameter's name as its context.
"""

from __future__ import annotations

import re
from datetime import datetime

from holdfast.domain.errors import Fault, InvalidInput, Refusal
from holdfast.domain.message import AnyMessage, Message
from holdfast.web.html.language import Language
from holdfast.web.html.words import SOURCE, words

_MOMENT = "moment"
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
# Codes and addresses are read from left to right, also in the midst of Arabic.
_ISOLATED = "\N{FIRST STRONG ISOLATE}{}\N{POP DIRECTIONAL ISOLATE}"


def translate(message: AnyMessage, language: Language) -> str:
    """Return the message in the language; one that the catalogue does not have stays English."""
    if language.code == SOURCE:
        return str(message)
    if not isinstance(message, Message):
        return language.gettext(message)
    values = {name: _value(name, str(value), language) for name, value in message.parameters.items()}
    return language.gettext(message.id, **values)


def translate_refusal(refusal: Refusal, language: Language) -> str:
    """Return what a refusal says; of invalid input the first faults, each with its place."""
    if language.code == SOURCE or not isinstance(refusal, InvalidInput):
        return translate(refusal.message, language)
    sentences = [Fault(at, translate(message, language)).sentence() for at, message in refusal.first_faults()]
    more = refusal.more_faults()
    return " ".join(sentences if more is None else [*sentences, translate(more, language)])


def _value(name: str, value: str, language: Language) -> str:
    word = words(language.code).pgettext(name, value)
    if word != value:
        return str(word)
    if name == _MOMENT:
        return language.moment(datetime.fromisoformat(value))
    return language.plain(value) if _NUMBER.fullmatch(value) else _ISOLATED.format(value)
