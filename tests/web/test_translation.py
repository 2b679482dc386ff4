"""Messages of the domain, causes of failure among them, in the person's language."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from holdfast.domain import errors
from holdfast.domain.addresses import BLOCKED_RANGES
from holdfast.domain.booking import BookingStatus
from holdfast.domain.booking_actions import SIGN, BookingAction
from holdfast.domain.errors import (
    DomainError,
    Fault,
    InvalidInput,
    Message,
    TransitionNotAllowed,
    UnknownUnit,
)
from holdfast.domain.holds import ADDRESS, VISITOR
from holdfast.domain.status import LOCKED, Status
from holdfast.domain.transitions import Action, Caller, transition
from holdfast.web.pages.i18n import catalogues, language_of, read_catalogue, translate, translate_error
from tests.web.message_ids import message_calls, places, sentences

ENGLISH = language_of("en", "latn", "Asia/Riyadh")
ARABIC = language_of("ar", "latn", "Asia/Riyadh")
IN_ARABIC_DIGITS = language_of("ar", "arab", "Asia/Riyadh")
FOUND = list(sentences())
WORDS = {
    "action": {*Action, SIGN, *BookingAction},
    "address_kind": {words for _, words in BLOCKED_RANGES} | {"an address with a zone"},
    "booking_status": {*BookingStatus},
    "new_status": {*LOCKED},
    "unit_status": {*Status, "archived"},
    "who": {VISITOR, ADDRESS},
}
"""The values of parameters that are words."""


def is_arabic(text: str) -> bool:
    return any("\u0621" <= character <= "\u064a" for character in text)


def catalogue() -> Iterator[tuple[str | None, str]]:
    (path,) = [path for path in catalogues("ar") if path.stem == "messages"]
    for message in read_catalogue(path, "ar"):
        if isinstance(message.id, str) and message.id:
            yield message.context, message.id


def test_english_stands_as_it_is() -> None:
    refusal = UnknownUnit("palm-court", "A-101")
    assert translate_error(refusal, ENGLISH) == "The project `palm-court` has no unit `A-101`."
    invalid = InvalidInput.at("/url", "The URL has no host.")
    assert translate_error(invalid, ENGLISH) == "url: The URL has no host."


def test_no_message_is_a_sentence_that_was_put_together() -> None:
    assert [(one.where, one.text) for one in FOUND if one.is_put_together] == []


def test_every_message_has_its_arabic() -> None:
    ids = {text for context, text in catalogue() if context is None}
    assert [one for one in FOUND if one.text not in ids] == []


def test_every_arabic_message_is_told_somewhere() -> None:
    told = {one.text for one in FOUND}
    assert [text for context, text in catalogue() if context is None and text not in told] == []


def test_every_message_has_a_parameter_for_each_place() -> None:
    calls = list(message_calls())
    wrong = [one for one in calls if any(places(text) != one.parameters for text in one.ids)]
    assert wrong == []
    assert {one.where.partition(":")[0] for one in calls if not one.ids} == {
        "domain/errors.py",
        "web/errors.py",
        "webhooks/causes.py",
    }


def test_every_word_has_its_arabic_and_none_is_left_over() -> None:
    known = defaultdict(set)
    for context, text in catalogue():
        if context is not None:
            known[context].add(text)
    assert known == WORDS


def refusal_kinds(kind: type[DomainError] = errors.DomainError) -> Iterator[type[DomainError]]:
    for under in kind.__subclasses__():
        yield under
        yield from refusal_kinds(under)


def test_a_refusal_of_every_kind_has_its_words_among_those_that_are_found() -> None:
    """A kind whose message came from afar would be missed by reading the source."""
    defaults = [refusal for kind in refusal_kinds() if (refusal := _made_of_nothing(kind)) is not None]
    assert {type(refusal).__name__ for refusal in defaults} >= {
        "NoCredentials",
        "DatabaseUnavailable",
        "UnknownRoute",
    }
    assert [refusal for refusal in defaults if not is_arabic(translate_error(refusal, ARABIC))] == []


def _made_of_nothing(kind: type[DomainError]) -> DomainError | None:
    try:
        return kind()
    except (AttributeError, TypeError):
        return None


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("action", Action)
def test_actions_and_statuses_are_told_in_arabic(action: Action, status: Status) -> None:
    caller = Caller.BUYER if action in (Action.PUT_ON_SALE, Action.TAKE_OFF_SALE) else Caller.API
    with pytest.raises(TransitionNotAllowed) as refused:
        transition(action, caller, status, archived=False)
    text = translate_error(refused.value, ARABIC)
    assert action not in text
    assert status not in text


def test_names_stay_as_they_are_and_apart_from_the_arabic() -> None:
    text = translate_error(UnknownUnit("palm-court", "A/101"), ARABIC)
    assert "\N{FIRST STRONG ISOLATE}palm-court\N{POP DIRECTIONAL ISOLATE}" in text
    assert "\N{FIRST STRONG ISOLATE}A/101\N{POP DIRECTIONAL ISOLATE}" in text


def test_a_name_that_looks_like_a_place_is_just_a_name() -> None:
    refusal = UnknownUnit("palm-court", "%(slug)s")
    assert "%(slug)s" in translate_error(refusal, ARABIC)
    assert "%(slug)s" in str(refusal)


def test_numbers_are_written_in_the_persons_digits() -> None:
    message = Message("This must have at most %(max_length)s characters.", {"max_length": 100})
    assert "100" in translate(message, ARABIC)
    assert "١٠٠" in translate(message, IN_ARABIC_DIGITS)


def test_times_are_those_of_the_persons_zone() -> None:
    at = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
    parameters = {"moment": "2026-11-14T09:30:00.000Z"}
    message = Message("The buyer has not signed yet; the hold ends at %(moment)s.", parameters)
    assert ARABIC.date_time(at) in translate(message, ARABIC)
    assert "12:30" in translate(message, ARABIC)


def test_of_many_faults_three_are_told_with_their_places() -> None:
    faults = [Fault(f"/units/{at}", "This field is required.") for at in range(5)]
    text = translate_error(InvalidInput(faults), ARABIC)
    assert [f"units/{at}:" in text for at in range(5)] == [True, True, True, False, False]
    assert translate(Message("And %(count)s more.", {"count": 2}), ARABIC) in text


def test_what_the_catalogue_does_not_have_is_left_as_it_is() -> None:
    assert translate("Something quite new.", ARABIC) == "Something quite new."
    assert translate("The receiver answered 503.", ARABIC) == "The receiver answered 503."
