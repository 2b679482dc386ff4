"""The tables of staff agree with the code, on every PostgreSQL."""

from uuid import uuid4

import pytest

from holdfast.domain.permissions import Role
from holdfast.domain.staff import DIGITS, LANGUAGES, Preferences, Theme
from holdfast.storage import staff
from holdfast.storage.database import ConstraintViolated, Database


async def add(database: Database, role: str = "viewer") -> None:
    async with database.writing() as connection:
        await connection.execute(
            "insert into staff (id, email, email_key, name, role) values ($1, $2, $2, 'x', $3)",
            uuid4(),
            f"{uuid4()}@example.com",
            role,
        )


async def test_every_role_can_be_stored_and_no_other(database: Database) -> None:
    for role in Role:
        await add(database, role)
    with pytest.raises(ConstraintViolated):
        await add(database, "owner")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("digits", DIGITS)
@pytest.mark.parametrize("theme", Theme)
async def test_every_preference_is_read_back(
    database: Database, language: str, digits: str, theme: Theme
) -> None:
    wanted = Preferences(language, digits, theme)
    async with database.writing() as connection:
        person = await staff.insert(connection, uuid4(), "a@b", "A", Role.SALES, None)
        assert person.preferences == Preferences()
        assert (await staff.update_preferences(connection, person.id, wanted)).preferences == wanted


async def test_a_new_person_has_nothing_to_sign_in_with(database: Database) -> None:
    async with database.writing() as connection:
        person = await staff.insert(connection, uuid4(), "a@b", "A", Role.SALES, None)
        account = await staff.find_account_by_email(connection, "A@B")
    assert account is not None
    assert account.staff == person
    assert (person.has_password, person.has_second_factor) == (False, False)
    assert (account.password_hash, account.factor_sealed, account.offered_sealed) == (None, None, None)
    assert person.failures_seen_at >= person.created_at.replace(microsecond=0)
