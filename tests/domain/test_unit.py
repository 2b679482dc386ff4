"""What replace, patch and lapse make of a unit."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.decision import TERMS, UNCONDITIONAL, Decision, Precondition, patch, replace
from holdfast.domain.errors import (
    DomainError,
    InvalidInput,
    PreconditionFailed,
    StatusLocked,
    TermsLocked,
    TransitionNotAllowed,
    UnknownUnit,
)
from holdfast.domain.event import EventName
from holdfast.domain.status import LOCKED, MID_BOOKING, Status
from holdfast.domain.unit import (
    Unit,
    UnitFields,
    as_seen,
    code_fault,
    expire_unit,
    is_expired,
    revision,
    unit_id,
)
from tests.domain.units import FIELDS, MINUTE, NOW, PROJECT, fields, snapshot, unit, units

MILLISECOND = timedelta(milliseconds=1)
settable = st.none() | st.sampled_from([Status.AVAILABLE, Status.UNAVAILABLE])


def put(
    found: Unit | None,
    wanted: UnitFields = FIELDS,
    status: Status | None = None,
    precondition: Precondition = UNCONDITIONAL,
) -> Decision:
    return replace(snapshot(found), "A-101", wanted, status, precondition, NOW)


def change(found: Unit | None, status: Status | None = None, **changes: Any) -> Decision:
    return patch(snapshot(found), "A-101", changes, status, UNCONDITIONAL, NOW)


def test_a_new_unit_is_available_and_has_no_event() -> None:
    decision = put(None)
    assert decision.created
    assert decision.unit.id == unit_id(PROJECT.id, "A-101")
    assert decision.unit.status is Status.AVAILABLE
    assert decision.unit.created_at == decision.unit.updated_at == NOW
    assert not decision.events


def test_a_new_unit_may_start_off_sale_without_an_event() -> None:
    decision = put(None, status=Status.UNAVAILABLE)
    assert decision.unit.status is Status.UNAVAILABLE
    assert not decision.events


@given(units(), fields, settable)
def test_the_same_replacement_twice_changes_nothing_the_second_time(
    found: Unit, wanted: UnitFields, status: Status | None
) -> None:
    try:
        first = put(found, wanted, status)
    except DomainError:
        return
    assert put(first.unit, wanted, status) == Decision(first.unit)


@given(units(), fields)
def test_a_replacement_stores_exactly_its_fields_or_names_the_terms_that_stand(
    found: Unit, wanted: UnitFields
) -> None:
    differing = tuple(name for name in TERMS if getattr(found.fields, name) != getattr(wanted, name))
    if found.status in MID_BOOKING and differing:
        with pytest.raises(TermsLocked) as refusal:
            put(found, wanted)
        assert refusal.value.fields == differing
    else:
        assert put(found, wanted).unit.fields == wanted


@given(units(), fields, settable)
def test_a_change_has_the_next_version_a_later_time_and_one_event_if_the_status_changed(
    found: Unit, wanted: UnitFields, status: Status | None
) -> None:
    try:
        decision = put(found, wanted, status)
    except DomainError:
        return
    if decision.unit is found:
        assert not decision.events
        return
    assert decision.unit.version == found.version + 1
    assert decision.unit.updated_at > found.updated_at
    assert bool(decision.events) == (decision.unit.status is not found.status)


@given(units(), fields, st.sets(st.sampled_from(UnitFields._fields)))
def test_a_patch_changes_the_named_fields_and_no_other(
    found: Unit, wanted: UnitFields, names: set[str]
) -> None:
    changes = {name: getattr(wanted, name) for name in names}
    try:
        patched = change(found, **changes).unit.fields
    except TermsLocked:
        return
    for name in UnitFields._fields:
        assert getattr(patched, name) == getattr(wanted if name in names else found.fields, name)


@given(units())
def test_an_empty_patch_changes_nothing(found: Unit) -> None:
    assert change(found).unit is found


@pytest.mark.parametrize("status", sorted(LOCKED))
@pytest.mark.parametrize("sent", list(Status))
def test_no_status_can_be_sent_while_the_unit_is_held_reserved_or_sold(status: Status, sent: Status) -> None:
    with pytest.raises(StatusLocked) as put_refused:
        put(unit(status), status=sent)
    with pytest.raises(StatusLocked) as patch_refused:
        change(unit(status), status=sent)
    for refusal in (put_refused.value, patch_refused.value):
        assert refusal.status is status
        assert refusal.fields == ("status",)


def test_a_hold_that_blocks_says_until_when() -> None:
    with pytest.raises(StatusLocked) as refusal:
        put(unit(Status.HELD), status=Status.AVAILABLE)
    assert refusal.value.hold_expires_at == NOW + MINUTE
    assert refusal.value.retry_after_seconds == 60


@pytest.mark.parametrize("found", [None, unit(Status.AVAILABLE), unit(Status.UNAVAILABLE)])
@pytest.mark.parametrize("sent", sorted(LOCKED))
def test_the_names_that_only_the_service_gives_are_invalid_where_nothing_is_locked(
    found: Unit | None, sent: Status
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        put(found, status=sent)
    assert refusal.value.faults[0].pointer == "/status"


@pytest.mark.parametrize("status", sorted(MID_BOOKING))
@pytest.mark.parametrize("name", TERMS)
def test_clearing_a_term_while_a_buyer_is_mid_booking_is_refused(status: Status, name: str) -> None:
    values: dict[str, Any] = {name: None}
    cleared = FIELDS._replace(**values)
    with pytest.raises(TermsLocked) as refusal:
        put(unit(status), cleared)
    assert refusal.value.fields == (name,)


def test_a_sold_unit_may_have_its_terms_changed() -> None:
    assert change(unit(Status.SOLD), price_sar=Decimal(1)).unit.fields.price_sar == 1


def test_taking_a_unit_off_sale_is_told_as_an_event_with_both_statuses() -> None:
    decision = put(unit(), status=Status.UNAVAILABLE)
    (event,) = decision.events
    assert event.type is EventName.UNAVAILABLE
    assert (event.previous_status, event.status) == (Status.AVAILABLE, Status.UNAVAILABLE)
    assert event.created_at == decision.unit.updated_at
    assert event.unit_version == decision.unit.version


def test_the_api_does_not_undo_what_staff_archived() -> None:
    archived = unit(Status.UNAVAILABLE, archived=True)
    with pytest.raises(TransitionNotAllowed):
        put(archived, status=Status.AVAILABLE)
    assert put(archived, status=Status.UNAVAILABLE).unit is archived
    assert change(archived, bedrooms=4).unit.archived


def test_a_patch_of_an_unknown_unit_says_so() -> None:
    with pytest.raises(UnknownUnit):
        change(None)


def test_a_precondition_names_the_revision_that_must_stand() -> None:
    current = revision(unit(), PROJECT)
    put(unit(), precondition=Precondition(match=frozenset({"other", current})))
    put(unit(), precondition=Precondition(match=frozenset("*")))
    put(None, precondition=Precondition(none_match=frozenset("*")))
    for found, precondition in (
        (unit(), Precondition(match=frozenset({"other"}))),
        (None, Precondition(match=frozenset("*"))),
        (unit(), Precondition(none_match=frozenset("*"))),
        (unit(), Precondition(none_match=frozenset({current}))),
    ):
        with pytest.raises(PreconditionFailed):
            put(found, precondition=precondition)


@pytest.mark.parametrize("status", sorted(MID_BOOKING))
def test_a_claim_is_over_at_its_millisecond_and_not_before(status: Status) -> None:
    claimed = unit(status)
    assert as_seen(claimed, NOW + MINUTE - MILLISECOND) is claimed
    assert as_seen(claimed, NOW + MINUTE) == expire_unit(claimed).unit
    released = expire_unit(claimed)
    assert released.unit.status is Status.AVAILABLE
    assert released.unit.updated_at == NOW + MINUTE
    assert released.unit.version == claimed.version + 1
    assert [event.type for event in released.events] == [EventName.RELEASED]


@given(units(), st.integers(0, 600_000))
def test_a_lapsed_unit_looks_the_same_whenever_one_looks(found: Unit, later: int) -> None:
    if is_expired(found, NOW):
        assert as_seen(found, NOW + later * MILLISECOND) == as_seen(found, NOW)


@pytest.mark.parametrize("code", ["A-101", "A/101", "..", "شقة ١٢", "é", "x" * 50])
def test_printable_text_is_a_code(code: str) -> None:
    assert code_fault(code) is None


@pytest.mark.parametrize(
    "code",
    ["", "x" * 51, " A", "A ", "A\n", "A\x00", "e\N{COMBINING ACUTE ACCENT}", "A\N{ZERO WIDTH SPACE}1"],
)
def test_other_text_is_no_code(code: str) -> None:
    assert code_fault(code) is not None
