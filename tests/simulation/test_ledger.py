"""Who has which unit, and whether two have one."""

from typing import Any

from holdfast.simulation.ledger import Claim, Ledger
from holdfast.simulation.promises import faults_of, openings


def claim(reference: str, code: str = "A-1") -> Claim:
    return Claim(reference, code, f"token of {reference}", "somebody")


def test_a_second_claim_on_a_unit_has_a_rival() -> None:
    ledger, first, second = Ledger(), claim("one"), claim("two")
    assert ledger.open(first) is None
    assert ledger.open(claim("other", "A-2")) is None
    assert ledger.open(second) is first


def test_the_same_hold_told_twice_is_one_claim() -> None:
    ledger = Ledger()
    ledger.open(claim("one"))
    assert ledger.open(claim("one")) is None
    assert len(ledger.claims) == 1


def test_a_claim_whose_end_was_asked_for_is_no_rival() -> None:
    """The unit may be another's before the answer is here."""
    ledger, first = Ledger(), claim("one")
    ledger.open(first)
    first.is_ending = True
    assert ledger.open(claim("two")) is None


def test_an_end_that_was_refused_is_none() -> None:
    ledger, first = Ledger(), claim("one")
    ledger.open(first)
    first.is_ending = True
    ledger.move(first, "reserved")
    assert ledger.open(claim("two")) is first


def test_a_late_deposit_must_not_take_a_unit_from_its_buyer() -> None:
    ledger, first, second = Ledger(), claim("one"), claim("two")
    ledger.open(first)
    ledger.move(first, "cancelled")
    ledger.open(second)
    assert ledger.move(first, "refund-due") is None
    assert ledger.move(first, "reserved") is second


def test_claims_are_counted_by_what_became_of_them() -> None:
    ledger = Ledger()
    for number, status in enumerate(("sold", "open", "signed", "lapsed", "sold")):
        own = claim(str(number), f"A-{number}")
        ledger.open(own)
        ledger.move(own, status)
    assert ledger.by_status() == {"lapsed": 1, "open": 1, "signed": 1, "sold": 2}
    assert [own.reference for own in ledger.held()] == ["1", "2"]
    assert ledger.wanted_count() == 4
    ledger.claims["3"].has_money_coming = True
    assert ledger.wanted_count() == 5


def entry(before: str | None, after: str | None, reference: str | None = None) -> dict[str, Any]:
    def of(status: str | None) -> dict[str, str]:
        return {} if status is None else {"status": status}

    return {"before": of(before), "after": of(after), "bookingReference": reference}


SOLD = [
    entry(None, "available"),
    entry("available", "held", "one"),
    entry(None, None, "one"),
    entry("held", "available", "one"),
    entry("available", "held", "two"),
    entry("held", "reserved", "two"),
    entry("reserved", "sold", "two"),
]


def test_a_history_in_order_has_no_faults() -> None:
    assert faults_of("A-1", SOLD) == []
    assert openings(SOLD) == {"one": 1, "two": 1}


def test_a_history_may_begin_anywhere() -> None:
    assert faults_of("A-1", SOLD[3:]) == []


def test_a_unit_held_for_two_is_a_fault() -> None:
    twice = [entry("available", "held", "one"), entry("held", "held", "two")]
    assert faults_of("A-1", twice) == ["A-1 was held for two while one had it."]


def test_a_change_that_is_missing_is_a_fault() -> None:
    broken = [entry("available", "held", "one"), entry("available", "held", "two")]
    assert faults_of("A-1", broken)[0] == "A-1 was held, and its next change began with available."


def test_an_entry_of_a_creation_or_of_nothing_is_read() -> None:
    creation = {"before": None, "after": {"status": "available"}, "bookingReference": None}
    assert faults_of("A-1", [creation, {"before": {}, "after": None, "bookingReference": None}]) == []
