"""Admins add, change, disable and reset people; whatever they do is written down."""

import asyncio
import json

import pytest

from holdfast.domain.audit import COMMAND, ActorKind, Author
from holdfast.domain.errors import (
    InvalidInput,
    InvalidSetupLink,
    LastAdmin,
    LoginFailed,
    StaffExists,
    UnknownStaff,
)
from holdfast.domain.permissions import Role
from holdfast.operations.staff import create_first_setup_link
from holdfast.storage.database import Database
from tests.support.staff import PASSWORD, Office, open_office

NEW_PASSWORD = "another horse of lead"
REQUEST = "request-1"


@pytest.fixture
def office(database: Database) -> Office:
    return open_office(database)


async def test_an_invited_person_chooses_a_password_and_signs_in(office: Office) -> None:
    person, token = await office.staff.invite(" Sami@example.com ", " Sami ", Role.SALES, COMMAND)
    assert (person.email, person.name, person.has_password) == ("Sami@example.com", "Sami", False)
    invitation = await office.staff.find_invited(token)
    assert invitation == person
    await office.staff.choose_password(token, NEW_PASSWORD, REQUEST)
    assert (await office.sign_in("sami@example.com", password=NEW_PASSWORD)).staff.id == person.id
    assert await office.actions(person.id) == ["create", "set-up"]


async def test_a_set_up_link_works_once_and_looking_at_it_uses_nothing_up(office: Office) -> None:
    _, token = await office.staff.invite("sami@example.com", "Sami", Role.SALES, COMMAND)
    for _ in range(3):
        await office.staff.find_invited(token)
    with pytest.raises(InvalidInput):
        await office.staff.choose_password(token, "short", REQUEST)
    tries = [office.staff.choose_password(token, f"{NEW_PASSWORD} {number}", REQUEST) for number in range(4)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(outcome, InvalidSetupLink) for outcome in outcomes) == 3
    with pytest.raises(InvalidSetupLink):
        await office.staff.find_invited(token)


@pytest.mark.parametrize("token", ["", "x" * 43, "\udcff" * 43, "\0" * 43], ids=ascii)
async def test_an_invented_link_is_refused(office: Office, token: str) -> None:
    with pytest.raises(InvalidSetupLink):
        await office.staff.find_invited(token)


async def test_a_link_dies_of_age_by_a_newer_one_and_with_its_person(office: Office) -> None:
    await office.add("boss@example.com")
    person, first = await office.staff.invite("sami@example.com", "Sami", Role.SALES, COMMAND)
    _, second = await office.staff.reset(person.id, COMMAND)
    with pytest.raises(InvalidSetupLink):
        await office.staff.find_invited(first)
    async with office.database.writing() as connection:
        await connection.execute("update setup_link set expires_at = clock_timestamp()")
    with pytest.raises(InvalidSetupLink):
        await office.staff.choose_password(second, NEW_PASSWORD, REQUEST)
    _, third = await office.staff.reset(person.id, COMMAND)
    await office.staff.change(person.id, {"disabled": True}, COMMAND)
    await office.staff.change(person.id, {"disabled": False}, COMMAND)
    with pytest.raises(InvalidSetupLink):
        await office.staff.find_invited(third)


async def test_the_first_admin_is_made_by_the_latest_link_and_only_while_there_is_no_staff(
    office: Office,
) -> None:
    first, second = (
        await create_first_setup_link(office.database),
        await create_first_setup_link(office.database),
    )
    assert first is not None
    assert second is not None
    with pytest.raises(InvalidSetupLink):
        await office.staff.add_first_admin(first, "nora@example.com", "Nora", PASSWORD, REQUEST)
    assert await office.staff.find_invited(second) is None
    person = await office.staff.add_first_admin(second, "nora@example.com", "Nora", PASSWORD, REQUEST)
    assert person.role is Role.ADMIN
    assert (await office.sign_in()).staff.id == person.id
    with pytest.raises(InvalidSetupLink):
        await office.staff.add_first_admin(second, "other@example.com", "Other", PASSWORD, REQUEST)
    assert await create_first_setup_link(office.database) is None


async def test_every_fault_of_the_first_admin_is_told_at_once(office: Office) -> None:
    token = await create_first_setup_link(office.database)
    assert token is not None
    with pytest.raises(InvalidInput) as refused:
        await office.staff.add_first_admin(token, "nobody", "", "short", REQUEST)
    assert [fault.pointer for fault in refused.value.faults] == ["/email", "/name", "/password"]


async def test_somebody_added_by_a_command_ends_the_offer_to_the_first_admin(office: Office) -> None:
    token = await create_first_setup_link(office.database)
    assert token is not None
    await office.add()
    with pytest.raises(InvalidSetupLink):
        await office.staff.add_first_admin(token, "thief@example.com", "Thief", PASSWORD, REQUEST)


async def test_one_address_is_one_person(office: Office) -> None:
    await office.add("nora@example.com")
    with pytest.raises(StaffExists):
        await office.staff.invite("NORA@EXAMPLE.COM", "Again", Role.VIEWER, COMMAND)


@pytest.mark.parametrize(
    ("email", "name", "pointers"), [("x", "", ["/email", "/name"]), ("a@b", "a\nb", ["/name"])]
)
async def test_every_fault_of_an_invitation_is_told(
    office: Office, email: str, name: str, pointers: list[str]
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await office.staff.invite(email, name, Role.SALES, COMMAND)
    assert [fault.pointer for fault in refused.value.faults] == pointers


async def test_another_role_signs_somebody_out_and_is_written_down(office: Office) -> None:
    author = Author(ActorKind.STAFF, "nora@example.com", REQUEST)
    await office.add()
    person = await office.add("sami@example.com", Role.SALES)
    opened = await office.sign_in("sami@example.com")
    changed = await office.staff.change(person.id, {"role": Role.VIEWER, "name": "Sami A."}, author)
    assert (changed.role, changed.name) == (Role.VIEWER, "Sami A.")
    assert not await office.is_signed_in(opened)
    async with office.database.reading() as connection:
        row = await connection.fetchrow(
            "select * from audit_entry where subject_id = $1 order by id desc limit 1", person.id
        )
    assert row is not None
    assert (row["action"], row["actor_kind"], row["actor_id"]) == ("change", "staff", "nora@example.com")
    assert json.loads(row["before"]) == {"name": "sami", "role": "sales"}
    assert json.loads(row["after"]) == {"name": "Sami A.", "role": "viewer"}


async def test_another_name_signs_nobody_out_and_the_same_again_is_no_change(office: Office) -> None:
    person = await office.add()
    opened = await office.sign_in()
    for _ in range(2):
        await office.staff.change(person.id, {"name": "Nora A.", "role": Role.ADMIN}, COMMAND)
    assert await office.is_signed_in(opened)
    assert await office.actions(person.id) == ["create", "change"]


async def test_who_is_disabled_is_signed_out_and_may_be_enabled_again(office: Office) -> None:
    await office.add()
    person = await office.add("sami@example.com", Role.SALES)
    opened = await office.sign_in("sami@example.com")
    disabled = await office.staff.change(person.id, {"disabled": True}, COMMAND)
    assert disabled.disabled_at is not None
    assert not await office.is_signed_in(opened)
    with pytest.raises(LoginFailed):
        await office.sign_in("sami@example.com")
    await office.staff.change(person.id, {"disabled": False}, COMMAND)
    assert not await office.is_signed_in(opened)
    assert await office.sign_in("sami@example.com")


async def test_a_reset_takes_password_second_factor_and_sessions(office: Office) -> None:
    person = await office.add()
    opened = await office.sign_in()
    await office.set_up_factor(await office.oneself(opened))
    reset, token = await office.staff.reset(person.id, COMMAND)
    assert (reset.has_password, reset.has_second_factor) == (False, False)
    assert not await office.is_signed_in(opened)
    with pytest.raises(LoginFailed):
        await office.sign_in()
    await office.staff.choose_password(token, NEW_PASSWORD, REQUEST)
    assert await office.sign_in(password=NEW_PASSWORD)


@pytest.mark.parametrize("changes", [{"role": Role.SALES}, {"disabled": True}], ids=["demoted", "disabled"])
async def test_the_last_admin_stays(office: Office, changes: dict[str, object]) -> None:
    boss = await office.add("boss@example.com")
    disabled = await office.add("away@example.com")
    await office.staff.change(disabled.id, {"disabled": True}, COMMAND)
    await office.staff.invite("invited@example.com", "Invited", Role.ADMIN, COMMAND)
    with pytest.raises(LastAdmin):
        await office.staff.change(boss.id, changes, COMMAND)
    await office.add("second@example.com")
    await office.staff.change(boss.id, changes, COMMAND)


async def test_of_two_admins_who_remove_each_other_one_stays(office: Office) -> None:
    for round_ in range(5):
        first = await office.add(f"first{round_}@example.com")
        second = await office.add(f"second{round_}@example.com")
        async with office.database.writing() as connection:
            await connection.execute(
                "update staff set role = 'viewer' where id not in ($1, $2)", first.id, second.id
            )
        both = [office.staff.change(person.id, {"disabled": True}, COMMAND) for person in (first, second)]
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert sum(isinstance(outcome, LastAdmin) for outcome in outcomes) == 1


async def test_staff_are_listed_page_by_page_the_oldest_first(office: Office) -> None:
    for number in range(5):
        await office.staff.invite(f"{number}@example.com", str(number), Role.VIEWER, COMMAND)
    first = await office.staff.page(None, 2)
    assert [person.name for person in first] == ["0", "1", "2"]
    rest = await office.staff.page((first[1].created_at, first[1].id), 10)
    assert [person.name for person in rest] == ["2", "3", "4"]
    assert [person.name for person in await office.staff.all()] == list("01234")


@pytest.mark.parametrize("email", ["nobody@example.com", "", "\0", "\ud800"], ids=ascii)
async def test_nobody_is_found_under_an_unknown_address(office: Office, email: str) -> None:
    with pytest.raises(UnknownStaff):
        await office.staff.find_by_email(email)


async def test_no_secret_is_in_the_audit_trail(office: Office) -> None:
    _, token = await office.staff.invite("sami@example.com", "Sami", Role.SALES, COMMAND)
    await office.staff.choose_password(token, NEW_PASSWORD, REQUEST)
    opened = await office.sign_in("sami@example.com", password=NEW_PASSWORD)
    secret = await office.set_up_factor(await office.oneself(opened), NEW_PASSWORD)
    async with office.database.reading() as connection:
        rows = await connection.fetch("select audit_entry::text from audit_entry")
        stored = await connection.fetch("select setup_link::text, staff::text from staff, setup_link")
    told = str([*rows, *stored])
    assert not [hidden for hidden in (token, NEW_PASSWORD, secret) if hidden in told]
