"""Units: PUT, PATCH, preconditions and codes, and what a unit is after the end of its hold."""

from typing import Any
from uuid import uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import errors
from holdfast.domain.decision import TERMS, UNCONDITIONAL, Decision, Precondition, patch, replace
from holdfast.domain.event import EventName
from holdfast.domain.status import LOCKED, MID_BOOKING, Status
from holdfast.domain.transitions import Action, Caller, transition
from holdfast.domain.unit import Unit, UnitFields, as_seen, code_fault, expire_unit, move, revision
from tests.domain.units import FIELDS, MILLISECOND, MINUTE, NOW, PROJECT, fields, snapshot, unit, units

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


@pytest.mark.parametrize("status", [None, Status.AVAILABLE, Status.UNAVAILABLE])
def test_a_new_unit_is_available_unless_it_starts_off_sale_and_has_no_event(status: Status | None) -> None:
    decision = put(None, status=status)
    assert (decision.created, decision.action, decision.events) == (True, "create", ())
    assert decision.unit.id == uuid5(PROJECT.id, "A-101")
    assert decision.unit.status is (status or Status.AVAILABLE)
    assert decision.unit.created_at == decision.unit.updated_at == NOW


@given(units(), fields, settable)
def test_a_put_stores_or_names_what_is_locked(found: Unit, wanted: UnitFields, status: Status | None) -> None:
    differing = tuple(name for name in TERMS if getattr(found.fields, name) != getattr(wanted, name))
    if found.status in MID_BOOKING and differing:
        with pytest.raises(errors.TermsLocked) as refused:
            put(found, wanted)
        assert refused.value.fields == differing
        return
    if found.status in LOCKED or found.archived:
        status = None
    decision = put(found, wanted, status)
    assert decision.unit.fields == wanted
    assert bool(decision.events) == (decision.unit.status is not found.status)
    if decision.unit is not found:
        assert decision.unit.version == found.version + 1
        assert decision.unit.updated_at > found.updated_at
    assert put(decision.unit, wanted, status) == Decision(decision.unit)


@given(units(), fields, st.sets(st.sampled_from(UnitFields._fields)))
def test_a_patch_changes_the_named_fields_alone(found: Unit, wanted: UnitFields, names: set[str]) -> None:
    changes = {name: getattr(wanted, name) for name in names}
    try:
        patched = change(found, **changes).unit
    except errors.TermsLocked:
        assert found.status in MID_BOOKING
        return
    assert patched.fields == found.fields._replace(**changes)
    assert change(patched).unit is patched, "an empty patch changes nothing"


@pytest.mark.parametrize("status", sorted(LOCKED))
@pytest.mark.parametrize("sent", list(Status))
def test_no_status_can_be_sent_while_the_unit_is_held_reserved_or_sold(status: Status, sent: Status) -> None:
    for send in (put, change):
        with pytest.raises(errors.StatusLocked) as refused:
            send(unit(status), status=sent)
        assert (refused.value.status, refused.value.fields) == (status, ("status",))
        held = status is Status.HELD
        assert refused.value.hold_expires_at == (NOW + MINUTE if held else None)
        assert refused.value.retry_after_seconds == (60 if held else None)


@pytest.mark.parametrize("found", [None, unit(Status.AVAILABLE), unit(Status.UNAVAILABLE)])
@pytest.mark.parametrize("sent", sorted(LOCKED))
def test_a_status_of_the_service_is_invalid_where_nothing_is_locked(found: Unit | None, sent: Status) -> None:
    for send in (put, change):
        with pytest.raises(errors.InvalidInput) as refused:
            send(found, status=sent)
        assert refused.value.faults[0].pointer == "/status"


@pytest.mark.parametrize("status", sorted(MID_BOOKING))
@pytest.mark.parametrize("name", TERMS)
def test_no_term_can_be_cleared_while_a_buyer_is_mid_booking_but_once_sold(status: Status, name: str) -> None:
    with pytest.raises(errors.TermsLocked) as refused:
        change(unit(status), **{name: None})
    assert refused.value.fields == (name,)
    assert getattr(change(unit(Status.SOLD), **{name: None}).unit.fields, name) is None


def test_the_api_does_not_undo_what_staff_archived() -> None:
    archived = unit(Status.UNAVAILABLE, archived=True)
    with pytest.raises(errors.TransitionNotAllowed) as refused:
        put(archived, status=Status.AVAILABLE)
    assert refused.value.fields == ("status",)
    assert put(archived, status=Status.UNAVAILABLE).unit is archived
    assert change(archived, bedrooms=4).unit.archived


def test_a_precondition_names_the_revision_that_must_stand() -> None:
    current = revision(unit(), PROJECT)
    matching, other = Precondition(frozenset({"other", current})), Precondition(frozenset({"other"}))
    exists, is_new = Precondition(match=frozenset("*")), Precondition(none_match=frozenset("*"))
    for found, precondition in ((unit(), matching), (unit(), exists), (None, is_new)):
        put(found, precondition=precondition)
    changed_since = Precondition(none_match=frozenset({current}))
    for found, precondition in ((unit(), other), (None, exists), (unit(), is_new), (unit(), changed_since)):
        with pytest.raises(errors.PreconditionFailed):
            put(found, precondition=precondition)
    patch(snapshot(unit()), "A-101", {}, None, matching, NOW)
    with pytest.raises(errors.PreconditionFailed):
        patch(snapshot(unit()), "A-101", {}, None, other, NOW)


def test_every_status_has_a_revision_of_its_own_and_so_has_an_expiry_that_is_never_written() -> None:
    revisions = {revision(unit()._replace(status=status), PROJECT) for status in Status}
    assert len(revisions) == len(Status)
    # Decided just before the end of the hold, stored just after it, and looked at in between.
    held = unit(Status.HELD)
    seen = as_seen(held, NOW + 2 * MINUTE)
    stored = held._replace(fields=FIELDS._replace(bedrooms=3), version=held.version + 1)
    assert (seen.status, seen.version) == (Status.AVAILABLE, stored.version)
    assert revision(seen, PROJECT) != revision(stored, PROJECT)


@pytest.mark.parametrize("status", sorted(MID_BOOKING))
def test_a_claim_is_over_at_its_millisecond_and_not_before(status: Status) -> None:
    claimed = unit(status)
    released = expire_unit(claimed)
    assert as_seen(claimed, NOW + MINUTE - MILLISECOND) is claimed
    assert as_seen(claimed, NOW + MINUTE) == as_seen(claimed, NOW + 5 * MINUTE) == released.unit
    assert (released.unit.status, released.unit.version) == (Status.AVAILABLE, claimed.version + 1)
    assert released.unit.updated_at == NOW + MINUTE
    assert [event.type for event in released.events] == [EventName.RELEASED]
    assert move(claimed, transition(Action.EXTEND, Caller.STAFF, status, archived=False), NOW).events == ()


def test_a_code_is_printable_text_in_nfc() -> None:
    good = ["A-101", "A/101", "..", "شقة ١٢", "é", "x" * 50]
    bad = ["", "x" * 51, " A", "A ", "A\n", "A\x00", "e\u0301", "A\u200b1"]
    assert [code for code in (*good, *bad) if code_fault(code) is None] == good
