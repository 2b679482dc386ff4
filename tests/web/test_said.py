"""Refusals and causes of failure, in the person's language."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from holdfast.domain import refusals
from holdfast.domain.addresses import REFUSED_RANGES
from holdfast.domain.booking import BookingStatus
from holdfast.domain.refusals import Fault, InvalidInput, TransitionNotAllowed, UnknownUnit
from holdfast.domain.status import Action, Status
from holdfast.web.html.language import language_of
from holdfast.web.html.said import said, said_fault, said_text
from holdfast.web.html.words import catalogues, read_catalogue, words
from tests.web.sentences import sentences

ENGLISH = language_of("en", "latn", "Asia/Riyadh")
ARABIC = language_of("ar", "latn", "Asia/Riyadh")
IN_ARABIC_DIGITS = language_of("ar", "arab", "Asia/Riyadh")
FOUND = list(sentences())


def is_arabic(text: str) -> bool:
    return any("\u0621" <= character <= "\u064a" for character in text)


def forms() -> Iterator[str]:
    (path,) = [path for path in catalogues("ar") if path.stem == "said"]
    for message in read_catalogue(path, "ar"):
        if isinstance(message.id, str) and message.id and not message.context:
            yield message.id


def test_english_stands_as_it_is() -> None:
    refusal = UnknownUnit("palm-court", "A-101")
    assert said(refusal, ENGLISH) == str(refusal)
    assert said(InvalidInput.at("/url", "The URL has no host."), ENGLISH) == "url: The URL has no host."


def test_every_sentence_has_its_arabic() -> None:
    told = [(one.where, text) for one in FOUND for text in one.texts]
    assert [(where, text) for where, text in told if not is_arabic(said_text(text, ARABIC))] == []


def test_every_arabic_sentence_is_told_somewhere() -> None:
    told = {said_text(text, ARABIC) for sentence in FOUND for text in sentence.texts}
    unused = [form for form in forms() if not any(_is_of(form, text) for text in told)]
    assert unused == []


def _is_of(form: str, text: str) -> bool:
    """The Arabic of the form without its values is in the text, piece by piece."""
    pieces = ARABIC.gettext(form).replace("%(", "\0(").split("\0")
    rest = [piece.partition(")s")[2] if piece.startswith("(") else piece for piece in pieces]
    return all(piece in text for piece in rest)


def refusal_kinds(kind: type[Exception] = refusals.Refusal) -> Iterator[type[Exception]]:
    for under in kind.__subclasses__():
        yield under
        yield from refusal_kinds(under)


def test_a_refusal_of_every_kind_has_its_words_among_those_that_are_found() -> None:
    """A kind whose sentence were put together from afar would be missed by reading the source."""
    defaults = [kind() for kind in refusal_kinds() if _needs_nothing(kind)]
    assert {type(refusal).__name__ for refusal in defaults} >= {
        "NoCredentials",
        "DatabaseAway",
        "UnknownRoute",
    }
    assert [refusal for refusal in defaults if not is_arabic(said_text(str(refusal), ARABIC))] == []


def _needs_nothing(kind: type[Exception]) -> bool:
    try:
        return bool(str(kind()))
    except TypeError:
        return False


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("action", Action)
def test_actions_and_statuses_are_told_in_arabic(action: Action, status: Status) -> None:
    text = said(TransitionNotAllowed(action, status), ARABIC)
    assert action not in text
    assert status not in text


@pytest.mark.parametrize("status", BookingStatus)
def test_statuses_of_bookings_are_told_in_arabic(status: BookingStatus) -> None:
    assert status not in said_text(f"`sign` is not possible: the booking is {status}.", ARABIC)


def test_kinds_of_addresses_are_told_in_arabic() -> None:
    kinds = {words for _, words in REFUSED_RANGES} | {"an address with a zone"}
    assert [kind for kind in kinds if words("ar").pgettext("address_kind", kind) == kind] == []


def test_names_stay_as_they_are_and_apart_from_the_arabic() -> None:
    text = said(UnknownUnit("palm-court", "A/101"), ARABIC)
    assert "\N{FIRST STRONG ISOLATE}palm-court\N{POP DIRECTIONAL ISOLATE}" in text
    assert "\N{FIRST STRONG ISOLATE}A/101\N{POP DIRECTIONAL ISOLATE}" in text


def test_a_name_that_looks_like_a_form_is_just_a_name() -> None:
    text = said(UnknownUnit("palm-court", "%(slug)s"), ARABIC)
    assert "%(slug)s" in text


def test_numbers_are_written_in_the_persons_digits() -> None:
    fault = Fault("/type", "This must have at most 100 characters.")
    assert "100" in said_fault(fault, ARABIC)
    assert "١٠٠" in said_fault(fault, IN_ARABIC_DIGITS)


def test_times_are_those_of_the_persons_zone() -> None:
    at = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
    text = said_text("The buyer has not signed yet; the hold ends at 2026-11-14T09:30:00.000Z.", ARABIC)
    assert ARABIC.moment(at) in text
    assert "12:30" in text


def test_of_many_faults_three_are_told_with_their_places() -> None:
    faults = [Fault(f"/units/{at}", "This field is required.") for at in range(5)]
    text = said(InvalidInput(faults), ARABIC)
    assert [f"units/{at}:" in text for at in range(5)] == [True, True, True, False, False]
    assert said_text("And 2 more.", ARABIC) in text


def test_what_has_no_form_is_left_as_it_is() -> None:
    assert said_text("Something quite new.", ARABIC) == "Something quite new."
