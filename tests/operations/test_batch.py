"""Commands about one unit or one holder that are stored together."""

from decimal import Decimal
from uuid import uuid4

import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.booking import BookingStatus, Holder
from holdfast.domain.errors import (
    DatabaseUnavailable,
    HeldTooRecently,
    InvalidInput,
    NotAvailable,
    TermsLocked,
    TooManyHolds,
    TooManyHoldsAtAddress,
)
from holdfast.domain.transitions import Caller
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.write_path import Command, RetriesExhausted, WriteResult, write
from holdfast.storage.database import Database
from tests.operations.commands import all_done, kinds, opening, rows
from tests.operations.query_counts import CountingDatabase
from tests.support.booking_commands import close_booking
from tests.support.inventory import replacement
from tests.support.sales import (
    cancellation,
    deposit,
    done,
    found,
    hold,
    make_lapse,
    new_units,
    signature,
)


async def test_a_hold_before_a_put_locks_its_terms(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    outcomes = await write(database, [await opening(database, key), replacement(*key, 5)])
    assert kinds(outcomes) == [WriteResult, TermsLocked]
    assert await rows(database, "select type from event") == [("unit.held",)]
    assert await rows(database, "select price_sar from unit") == [(Decimal(1_000_000),)]


async def test_a_hold_after_a_put_has_the_new_terms(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    _, held = await all_done(database, [replacement(*key, 5), await opening(database, key)])
    assert held.booking.terms.price_sar == Decimal(5)
    assert await found(database, held.booking) == held.booking
    stored = await rows(database, "select price_sar, status, version from unit")
    assert stored == [(Decimal(5), "held", held.unit.version)]


async def test_of_two_holds_in_one_batch_the_first_wins(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    outcomes = await write(database, [await opening(database, key) for _ in range(3)])
    assert kinds(outcomes) == [WriteResult, NotAvailable, NotAvailable]
    assert await rows(database, "select count(*) from booking") == [(1,)]


async def test_the_same_request_twice_in_one_batch_is_one_hold(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    key_id = uuid4()
    same = []
    for _ in range(2):
        one = (await opening(database, key)).request
        draft = one.draft._replace(idempotency_id=key_id, token_hash=b"made of the key")
        same.append(HoldUnit(key, COMMAND, one._replace(draft=draft)))
    first, again = await all_done(database, same)
    assert (first.booking, first.changed, again.changed) == (again.booking, True, False)


async def test_a_whole_sale_in_one_batch_is_one_row_and_all_its_events(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    held = await opening(database, key)
    (first,) = await all_done(database, [held])
    steps: list[Command] = [
        signature(key, first.booking),
        deposit(key, first.booking),
        close_booking(key, COMMAND, first.booking.number, Caller.STAFF),
    ]
    *_, sold = await all_done(database, steps)
    assert await found(database, sold.booking) == sold.booking
    told = await rows(database, "select type, booking_reference from event order by unit_version")
    reference = first.booking.reference
    assert told == [("unit.held", None), ("unit.reserved", reference), ("unit.sold", reference)]
    noted = await rows(database, "select action from audit_entry where subject_id in (select id from unit)")
    assert sorted(noted) == [(name,) for name in ("close-sale", "confirm-deposit", "create", "open", "sign")]


@pytest.mark.parametrize("by", ["visitor", "address"])
async def test_the_holds_of_one_batch_count_against_the_limit(database: Database, by: str) -> None:
    codes = [f"A-{number}" for number in range(5)]
    project_id = await new_units(database, *codes)
    holder = Holder(None, uuid4()) if by == "visitor" else Holder(uuid4(), None)
    outcomes = await write(database, [await opening(database, (project_id, code), holder) for code in codes])
    refused = TooManyHolds if by == "visitor" else TooManyHoldsAtAddress
    assert kinds(outcomes) == [WriteResult] * 3 + [refused] * 2
    assert sorted(await rows(database, f"select {by}_slot from booking")) == [(1,), (2,), (3,)]


async def test_a_signature_is_no_second_hold(database: Database) -> None:
    codes = ["A-1", "A-2", "A-3"]
    project_id = await new_units(database, *codes)
    holder = Holder(uuid4(), uuid4())
    keys = [(project_id, code) for code in codes]
    first, second = await all_done(database, [await opening(database, key, holder) for key in keys[:2]])
    signatures = [signature(key, one.booking) for key, one in zip(keys, (first, second), strict=False)]
    *_, third = await all_done(database, [*signatures, await opening(database, keys[2], holder)])
    assert third.booking.slots == (3, 3)


async def test_a_hold_right_behind_a_cancellation_counts_what_its_holder_has(database: Database) -> None:
    """The unit is not free when the batch begins, yet its next holder is counted like any other."""
    project_id = await new_units(database, "A-1", "A-2")
    holder = Holder(uuid4(), uuid4())
    await all_done(database, [await opening(database, (project_id, "A-1"), holder)])
    key = (project_id, "A-2")
    taken = await hold(database, key)
    _, held = await all_done(database, [cancellation(key, taken), await opening(database, key, holder)])
    assert held.booking.slots == (2, 2)


async def test_a_hold_right_behind_a_cancellation_is_held_to_the_limit(database: Database) -> None:
    project_id = await new_units(database, "A-1", "A-2", "A-3", "A-4")
    holder = Holder(uuid4(), None)
    await all_done(database, [await opening(database, (project_id, f"A-{n}"), holder) for n in (1, 2, 3)])
    key = (project_id, "A-4")
    taken = await hold(database, key)
    outcomes = await write(database, [cancellation(key, taken), await opening(database, key, holder)])
    assert kinds(outcomes) == [WriteResult, TooManyHoldsAtAddress]


async def test_a_lapsed_hold_ends_before_the_next_one_begins(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    lapsed = await hold(database, key)
    await make_lapse(database, lapsed)
    (held,) = await all_done(database, [await opening(database, key)])
    ended = await found(database, lapsed)
    assert (ended.status, (await found(database, held.booking)).status) == ("lapsed", "open")
    told = await rows(database, "select type, previous_status from event order by unit_version")
    assert told == [("unit.held", "available"), ("unit.released", "held"), ("unit.held", "available")]
    author = "select actor_kind, booking_reference from audit_entry where action = 'lapse-hold'"
    assert await rows(database, author) == [("clock", lapsed.reference)]


async def test_whoever_lets_a_hold_lapse_waits_even_if_nobody_has_written_its_end(database: Database) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    holder = Holder(None, uuid4())
    (held,) = await all_done(database, [await opening(database, key, holder)])
    await make_lapse(database, held.booking)
    other = Holder(None, uuid4())
    again = [await opening(database, key, who) for who in (holder, other, holder)]
    assert kinds(await write(database, again)) == [HeldTooRecently, WriteResult, NotAvailable]
    assert (await found(database, held.booking)).status is BookingStatus.LAPSED


REFUSE = """
    create function refuse() returns trigger language plpgsql as $$
        begin raise exception 'not today' using errcode = 'check_violation'; end
    $$;
    create trigger refuse before insert on {table} execute function refuse()
"""


@pytest.mark.parametrize("table", ["booking", "event", "audit_entry"])
async def test_a_hold_is_stored_with_its_booking_its_event_and_its_entry_or_not_at_all(
    database: Database, caplog: pytest.LogCaptureFixture, table: str
) -> None:
    key = (await new_units(database, "A-1"), "A-1")
    async with database.writing() as connection:
        await connection.execute(REFUSE.format(table=table))
    outcomes = await write(database, [await opening(database, key)])
    assert kinds(outcomes) == [InvalidInput]
    counts = "select (select count(*) from booking), (select count(*) from event), count(*) from audit_entry"
    assert await rows(database, f"{counts} where action = 'open'") == [(0, 0, 0)]
    assert await rows(database, "select status, version, turn from unit") == [("available", 1, 1)]
    assert logged(caplog) == [("the database rejected a change that the domain allows", "A-1", "23514")]


async def test_places_that_fell_free_are_given_again_first(database: Database) -> None:
    codes = [f"A-{number}" for number in range(5)]
    project_id = await new_units(database, *codes)
    holder = Holder(uuid4(), None)
    keys = [(project_id, code) for code in codes]
    first, *_ = await all_done(database, [await opening(database, key, holder) for key in keys[:2]])
    await done(database, cancellation(keys[0], first.booking))
    outcomes = await write(database, [await opening(database, key, holder) for key in keys[2:]])
    assert kinds(outcomes) == [WriteResult, WriteResult, TooManyHoldsAtAddress]
    places = await rows(database, "select address_slot from booking order by address_slot")
    assert places == [(1,), (2,), (3,), (None,)]


async def test_a_hold_behind_a_cancellation_fails_neither_itself_nor_a_stranger(database: Database) -> None:
    """Its address has places taken: one that was not counted would be refused by the database, each time."""
    project_id = await new_units(database, "A-1", "A-2", "A-3", "B-1")
    holder = Holder(uuid4(), None)
    await all_done(database, [await opening(database, (project_id, f"A-{n}"), holder) for n in (1, 2)])
    key = (project_id, "A-3")
    taken = await hold(database, key)
    commands: list[Command] = [
        cancellation(key, taken),
        await opening(database, key, holder),
        await opening(database, (project_id, "B-1")),
    ]
    counting = CountingDatabase(database)
    _, held, _ = await all_done(counting, commands)
    assert (held.booking.slots.of_address, counting.transactions) == (3, 1)


OVERTAKE = """
    create function overtake() returns trigger language plpgsql as $$
        begin raise exception 'for the sake of another' using errcode = 'serialization_failure'; end
    $$;
    create trigger overtake before insert on booking
        for each row when (new.number = {number}) execute function overtake()
"""


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str]]:
    fields = [vars(record)["fields"] for record in caplog.records]
    told = [(one["unitCode"], one["why"]) for one in fields]
    return [(record.message, *one) for record, one in zip(caplog.records, told, strict=True)]


async def test_a_command_that_is_overtaken_for_ever_does_not_fail_its_neighbours(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    codes = [f"A-{number}" for number in range(4)]
    project_id = await new_units(database, *codes)
    commands = [await opening(database, (project_id, code)) for code in codes]
    async with database.writing() as connection:
        await connection.execute(OVERTAKE.format(number=commands[1].request.draft.number))
    outcomes = await write(database, [*commands, replacement(project_id, "B-1")])
    assert kinds(outcomes) == [WriteResult, RetriesExhausted, WriteResult, WriteResult, WriteResult]
    assert isinstance(outcomes[1], DatabaseUnavailable)
    assert "Other changes came first" in str(outcomes[1])
    assert logged(caplog) == [("a change was overtaken again and again", "A-1", "for the sake of another")]
    stored = await rows(database, "select code, status from unit order by code")
    others = [(code, "available" if code == "A-1" else "held") for code in codes]
    assert stored == [*others, ("B-1", "available")]
