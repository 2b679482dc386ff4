"""Numbers, tokens and ids of a booking, which are made before its transaction."""

import asyncio
from uuid import uuid4

import pytest

from holdfast.domain.api_key import token_hash
from holdfast.domain.booking import NOBODY
from holdfast.domain.references import decode_reference
from holdfast.operations import booking_commands
from holdfast.operations.booking_commands import BookingDrafts, DraftedBooking, Requester
from holdfast.storage.database import Database

PROJECT_ID, CODE = uuid4(), "A-1"
ASKED = Requester("192.0.2.1", "visitor-cookie", "key-1")


async def test_no_number_is_given_twice_by_any_process(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booking_commands, "NUMBERS_AT_ONCE", 7)
    books = [BookingDrafts(database) for _ in range(4)]
    made = await asyncio.gather(*(book.draft() for book in books for _ in range(25)))
    numbers = {drafted.draft.number for drafted in made}
    assert len(numbers) == len({drafted.draft.reference for drafted in made}) == 100
    assert all(decode_reference(drafted.draft.reference) == drafted.draft.number for drafted in made)


async def test_a_number_that_was_given_back_is_given_again_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booking_commands, "NUMBERS_AT_ONCE", 2)
    book = BookingDrafts(database)
    first = await book.draft()
    book.give_back(first.draft)
    numbers = [(await book.draft()).draft.number for _ in range(6)]
    assert numbers.count(first.draft.number) == 1
    assert len(set(numbers)) == 6


async def test_what_was_taken_from_a_database_that_is_gone_is_forgotten(database: Database) -> None:
    book = BookingDrafts(database)
    first = await book.draft_for(ASKED, PROJECT_ID, CODE)
    async with database.writing() as connection:
        await connection.execute("select setval('booking_number', 5000)")
        await connection.execute("update installation set secret = sha256(secret)")
    book.forget()
    second = await book.draft_for(ASKED, PROJECT_ID, CODE)
    assert second.draft.number == 5001
    assert second.token != first.token


async def test_staff_make_bookings_for_nobody_that_is_known_yet(database: Database) -> None:
    book = BookingDrafts(database)
    first, second = await book.draft(), await book.draft()
    assert (first.draft.holder, first.draft.idempotency_id) == (NOBODY, None)
    assert first.draft.token_hash == token_hash(first.token)
    assert first.token != second.token


async def test_the_same_request_gets_the_same_token_from_every_process(database: Database) -> None:
    first = await BookingDrafts(database).draft_for(ASKED, PROJECT_ID, CODE)
    again = await BookingDrafts(database).draft_for(ASKED, PROJECT_ID, CODE)
    assert (first.token, first.draft.idempotency_id) == (again.token, again.draft.idempotency_id)
    assert first.draft.idempotency_id is not None
    assert first.draft.token_hash == token_hash(first.token)
    assert first.draft.number != again.draft.number


async def test_whatever_differs_gets_another_token(database: Database) -> None:
    book = BookingDrafts(database)
    made = [
        await book.draft_for(requester, project_id, code)
        for requester, project_id, code in (
            (ASKED, PROJECT_ID, CODE),
            (ASKED, uuid4(), CODE),
            (ASKED, PROJECT_ID, "A-2"),
            (ASKED._replace(address="192.0.2.2"), PROJECT_ID, CODE),
            (ASKED._replace(visitor="another-cookie"), PROJECT_ID, CODE),
            (ASKED._replace(visitor=None), PROJECT_ID, CODE),
            (ASKED._replace(idempotency_key="key-2"), PROJECT_ID, CODE),
        )
    ]
    assert len({one.token for one in made}) == len(made)
    assert len({one.draft.idempotency_id for one in made}) == len(made)


async def test_without_a_key_every_request_gets_a_token_of_its_own(database: Database) -> None:
    book, keyless = BookingDrafts(database), ASKED._replace(idempotency_key=None)
    first, second = (
        await book.draft_for(keyless, PROJECT_ID, CODE),
        await book.draft_for(keyless, PROJECT_ID, CODE),
    )
    assert first.token != second.token
    assert first.draft.idempotency_id is None
    assert first.draft.holder == second.draft.holder


async def test_another_installation_makes_another_token_and_other_ids_of_the_same(database: Database) -> None:
    first = await BookingDrafts(database).draft_for(ASKED, PROJECT_ID, CODE)
    async with database.writing() as connection:
        await connection.execute("update installation set secret = sha256(secret)")
    other = await BookingDrafts(database).draft_for(ASKED, PROJECT_ID, CODE)
    assert first.token != other.token
    assert set(ids(first)).isdisjoint(ids(other))


async def test_address_and_cookie_are_kept_apart_and_cannot_be_read_off(database: Database) -> None:
    book = BookingDrafts(database)
    alike = await book.draft_for(Requester("same", "same", "same"), PROJECT_ID, CODE)
    assert len(set(ids(alike))) == 3
    no_cookie = await book.draft_for(Requester("same"), PROJECT_ID, CODE)
    assert no_cookie.draft.holder == (alike.draft.holder.address_id, None)


def ids(drafted: DraftedBooking) -> list[object]:
    return [*drafted.draft.holder, drafted.draft.idempotency_id]
