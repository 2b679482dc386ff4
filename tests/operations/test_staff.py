"""Admins add, change, disable and reset people, people change their own account, and all is written down."""

import asyncio
import json

import pytest

from holdfast.domain import errors
from holdfast.domain.audit import COMMAND, ActorKind, Author
from holdfast.domain.login import FREE_FAILURES
from holdfast.domain.permissions import Role
from holdfast.domain.staff import Preferences, Theme
from holdfast.operations.login import Passwords
from holdfast.operations.staff import Accounts, OwnAccount, create_first_setup_link
from holdfast.storage import login
from holdfast.storage.database import Connection
from holdfast.storage.secrets import SecretBox, new_encryption_key
from tests.support.sql import execute, rows
from tests.support.staff import PASSWORD, QUICK, Office

NEW_PASSWORD = "another horse of lead"
WRONG_PASSWORD = "a horse of leaf"
REQUEST = "request-1"
SAMI = "sami@example.com"


@pytest.fixture
async def nora(office: Office) -> OwnAccount:
    await office.add()
    return await office.oneself(await office.sign_in())


def pointers(refused: pytest.ExceptionInfo[errors.InvalidInput]) -> list[str]:
    return [fault.pointer for fault in refused.value.faults]


async def test_an_invited_person_chooses_a_password_and_signs_in(office: Office) -> None:
    person, token = await office.staff.invite(" Sami@example.com ", " Sami ", Role.SALES, COMMAND)
    assert (person.email, person.name, person.has_password) == ("Sami@example.com", "Sami", False)
    assert await office.staff.find_invited(token) == person
    await office.staff.choose_password(token, NEW_PASSWORD, REQUEST, "ar")
    signed_in = (await office.sign_in(SAMI, password=NEW_PASSWORD)).staff
    assert (signed_in.id, signed_in.preferences.language) == (person.id, "ar")
    assert await office.actions(person.id) == ["create", "set-up"]
    # Whoever has signed in has chosen a language already.
    _, token = await office.staff.reset(person.id, COMMAND)
    await office.staff.choose_password(token, NEW_PASSWORD, REQUEST, "en")
    assert (await office.staff.find(person.id)).preferences.language == "ar"


async def test_a_set_up_link_works_once_and_looking_at_it_uses_nothing_up(office: Office) -> None:
    _, token = await office.staff.invite(SAMI, "Sami", Role.SALES, COMMAND)
    for _ in range(3):
        await office.staff.find_invited(token)
    with pytest.raises(errors.InvalidInput):
        await office.staff.choose_password(token, "short", REQUEST)
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.add_first_admin(token, "boss@example.com", "Boss", PASSWORD, REQUEST)
    tries = [office.staff.choose_password(token, f"{NEW_PASSWORD} {number}", REQUEST) for number in range(4)]
    outcomes = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(outcome, errors.InvalidSetupLink) for outcome in outcomes) == 3
    for link in (token, "", "x" * 43, "\udcff" * 43, "\0" * 43):
        with pytest.raises(errors.InvalidSetupLink):
            await office.staff.find_invited(link)


async def test_a_link_dies_of_age_by_a_newer_one_and_with_its_person(office: Office) -> None:
    await office.add("boss@example.com")
    person, first = await office.staff.invite(SAMI, "Sami", Role.SALES, COMMAND)
    _, second = await office.staff.reset(person.id, COMMAND)
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.find_invited(first)
    await execute(office.database, "update setup_link set expires_at = clock_timestamp()")
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.choose_password(second, NEW_PASSWORD, REQUEST)
    _, third = await office.staff.reset(person.id, COMMAND)
    for disabled in (True, False):
        await office.staff.change(person.id, {"disabled": disabled}, COMMAND)
        with pytest.raises(errors.InvalidSetupLink):
            await office.staff.find_invited(third)
    _, fourth = await office.staff.reset(person.id, COMMAND)
    await execute(office.database, "update staff set disabled_at = now()")
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.find_invited(fourth)


async def test_the_first_admin_is_made_by_the_latest_link(office: Office) -> None:
    first, second = [await create_first_setup_link(office.database) for _ in range(2)]
    assert first is not None
    assert second is not None
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.add_first_admin(first, "nora@example.com", "Nora", PASSWORD, REQUEST)
    assert await office.staff.find_invited(second) is None
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.choose_password(second, PASSWORD, REQUEST)
    with pytest.raises(errors.InvalidInput) as refused:
        await office.staff.add_first_admin(second, "nobody", "", "short", REQUEST)
    assert pointers(refused) == ["/email", "/name", "/password"]
    person = await office.staff.add_first_admin(second, "nora@example.com", "Nora", PASSWORD, REQUEST, "ar")
    assert person.role is Role.ADMIN
    signed_in = (await office.sign_in()).staff
    assert (signed_in.id, signed_in.preferences.language) == (person.id, "ar")
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.add_first_admin(second, "other@example.com", "Other", PASSWORD, REQUEST)
    assert await create_first_setup_link(office.database) is None


@pytest.mark.parametrize("comes", ["by a command", "before", "meanwhile"])
async def test_the_first_link_is_void_once_there_is_somebody_else(
    office: Office, monkeypatch: pytest.MonkeyPatch, comes: str
) -> None:
    insert = """
        insert into staff (id, email, email_key, name, role)
        values (gen_random_uuid(), 'a@b', 'a@b', 'A', 'viewer')
    """
    token = await create_first_setup_link(office.database)
    assert token is not None
    if comes == "by a command":
        await office.add()
    elif comes == "before":
        await execute(office.database, insert)
        with pytest.raises(errors.InvalidSetupLink):
            await office.staff.find_invited(token)
    else:

        async def add_and_use(connection: Connection, _: bytes) -> bool:
            await connection.execute(insert)
            return True

        monkeypatch.setattr(login, "use_setup_link", add_and_use)
    with pytest.raises(errors.InvalidSetupLink):
        await office.staff.add_first_admin(token, "thief@example.com", "Thief", PASSWORD, REQUEST)


async def test_one_address_is_one_person_and_every_fault_of_an_invitation_is_told(office: Office) -> None:
    await office.add("nora@example.com")
    with pytest.raises(errors.StaffExists):
        await office.staff.invite("NORA@EXAMPLE.COM", "Again", Role.VIEWER, COMMAND)
    for email, name, faults in (("x", "", ["/email", "/name"]), ("a@b", "a\nb", ["/name"])):
        with pytest.raises(errors.InvalidInput) as refused:
            await office.staff.invite(email, name, Role.SALES, COMMAND)
        assert pointers(refused) == faults


async def test_another_role_signs_somebody_out_and_is_written_down(office: Office) -> None:
    author = Author(ActorKind.STAFF, "nora@example.com", REQUEST)
    await office.add()
    person = await office.add(SAMI, Role.SALES)
    opened = await office.sign_in(SAMI)
    # Another name signs nobody out, and the same again is no change.
    for _ in range(2):
        await office.staff.change(person.id, {"name": "S.", "role": Role.SALES}, COMMAND)
    assert await office.is_signed_in(opened)
    assert await office.actions(person.id) == ["create", "change"]
    changed = await office.staff.change(person.id, {"role": Role.VIEWER, "name": "Sami A."}, author)
    assert (changed.role, changed.name) == (Role.VIEWER, "Sami A.")
    assert not await office.is_signed_in(opened)
    columns = "action, actor_kind, actor_id, before::text, after::text"
    *_, (*who, before, after) = await rows(office.database, f"select {columns} from audit_entry order by id")
    assert who == ["change", "staff", "nora@example.com"]
    assert json.loads(before) == {"name": "S.", "role": "sales"}
    assert json.loads(after) == {"name": "Sami A.", "role": "viewer"}


async def test_who_is_disabled_is_signed_out_and_may_be_enabled_again(office: Office) -> None:
    await office.add()
    person = await office.add(SAMI, Role.SALES)
    opened = await office.sign_in(SAMI)
    disabled = await office.staff.change(person.id, {"disabled": True}, COMMAND)
    assert disabled.disabled_at is not None
    assert not await office.is_signed_in(opened)
    with pytest.raises(errors.LoginFailed):
        await office.sign_in(SAMI)
    await office.staff.change(person.id, {"disabled": False}, COMMAND)
    assert not await office.is_signed_in(opened)
    assert await office.sign_in(SAMI)


async def test_a_reset_takes_password_second_factor_and_sessions(office: Office, nora: OwnAccount) -> None:
    await office.set_up_factor(nora)
    reset, token = await office.staff.reset(nora.staff.id, COMMAND)
    assert (reset.has_password, reset.has_second_factor) == (False, False)
    assert await office.login.list_sessions(nora.staff.id) == []
    with pytest.raises(errors.LoginFailed):
        await office.sign_in()
    await office.staff.choose_password(token, NEW_PASSWORD, REQUEST)
    assert await office.sign_in(password=NEW_PASSWORD)


@pytest.mark.parametrize("changes", [{"role": Role.SALES}, {"disabled": True}], ids=["demoted", "disabled"])
async def test_the_last_admin_stays(office: Office, changes: dict[str, object]) -> None:
    boss = await office.add("boss@example.com")
    disabled = await office.add("away@example.com")
    await office.staff.change(disabled.id, {"disabled": True}, COMMAND)
    await office.staff.change(disabled.id, {"name": "Away"}, COMMAND)
    await office.staff.invite("invited@example.com", "Invited", Role.ADMIN, COMMAND)
    with pytest.raises(errors.LastAdmin):
        await office.staff.change(boss.id, changes, COMMAND)
    await office.add("second@example.com")
    await office.staff.change(boss.id, changes, COMMAND)


async def test_of_two_admins_who_remove_each_other_one_stays(office: Office) -> None:
    for round_ in range(3):
        first = await office.add(f"first{round_}@example.com")
        second = await office.add(f"second{round_}@example.com")
        others = f"update staff set role = 'viewer' where id not in ('{first.id}', '{second.id}')"
        await execute(office.database, others)
        both = [office.staff.change(person.id, {"disabled": True}, COMMAND) for person in (first, second)]
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        assert sum(isinstance(outcome, errors.LastAdmin) for outcome in outcomes) == 1


async def test_staff_are_listed_page_by_page_the_oldest_first(office: Office) -> None:
    for number in range(5):
        await office.staff.invite(f"{number}@example.com", str(number), Role.VIEWER, COMMAND)
    first = await office.staff.page(None, 2)
    assert [person.name for person in first] == ["0", "1", "2"]
    rest = await office.staff.page((first[1].created_at, first[1].id), 10)
    assert [person.name for person in rest] == ["2", "3", "4"]
    assert [person.name for person in await office.staff.all()] == list("01234")
    # Nobody here is an admin, who could be the last.
    assert (await office.staff.change(first[0].id, {"name": "zero"}, COMMAND)).name == "zero"
    for email in ("nobody@example.com", "", "\0", "\ud800"):
        with pytest.raises(errors.UnknownStaff):
            await office.staff.find_by_email(email)


async def test_no_secret_is_in_the_audit_trail(office: Office) -> None:
    _, token = await office.staff.invite(SAMI, "Sami", Role.SALES, COMMAND)
    await office.staff.choose_password(token, NEW_PASSWORD, REQUEST)
    opened = await office.sign_in(SAMI, password=NEW_PASSWORD)
    secret = await office.set_up_factor(await office.oneself(opened), NEW_PASSWORD)
    told = str(await rows(office.database, "select audit_entry::text from audit_entry"))
    told += str(await rows(office.database, "select setup_link::text, staff::text from staff, setup_link"))
    assert not [hidden for hidden in (token, NEW_PASSWORD, secret) if hidden in told]


# People change their own account.


async def test_a_new_name_and_preferences_are_kept(office: Office, nora: OwnAccount) -> None:
    assert (await office.accounts.rename(nora, " Nora Al-Harbi ")).name == "Nora Al-Harbi"
    await office.accounts.rename(nora, "Nora Al-Harbi")
    with pytest.raises(errors.InvalidInput):
        await office.accounts.rename(nora, " ")
    assert await office.actions(nora.staff.id) == ["create", "change"]
    wanted = Preferences("ar", "arab", Theme.DARK)
    assert (await office.accounts.set_preferences(nora.staff.id, wanted)).preferences == wanted
    assert (await office.staff.find(nora.staff.id)).preferences == wanted
    await execute(office.database, "delete from staff_session", "delete from staff")
    with pytest.raises(errors.UnknownStaff):
        await office.accounts.rename(nora, "Nobody")


async def test_a_new_password_needs_the_old_one(office: Office, nora: OwnAccount) -> None:
    elsewhere = await office.sign_in()
    for old, new, fault in ((WRONG_PASSWORD, NEW_PASSWORD, "/password"), (PASSWORD, "short", "/newPassword")):
        with pytest.raises(errors.InvalidInput) as refused:
            await office.accounts.change_password(nora, old, new)
        assert pointers(refused) == [fault]
    assert await office.is_signed_in(elsewhere)
    await office.accounts.change_password(nora, PASSWORD, NEW_PASSWORD)
    assert not await office.is_signed_in(elsewhere)
    assert [one.id for one in await office.login.list_sessions(nora.staff.id)] == [nora.session_id]
    with pytest.raises(errors.LoginFailed):
        await office.sign_in()
    assert await office.sign_in(password=NEW_PASSWORD)


async def test_a_password_is_not_found_out_by_trying(office: Office, nora: OwnAccount) -> None:
    for _ in range(FREE_FAILURES):
        with pytest.raises(errors.InvalidInput):
            await office.accounts.remove_factor(nora, WRONG_PASSWORD, "")
    with pytest.raises(errors.TooManyAttempts):
        await office.accounts.remove_factor(nora, PASSWORD, "")


async def test_a_second_factor_counts_once_it_is_confirmed(office: Office, nora: OwnAccount) -> None:
    elsewhere = await office.sign_in()
    with pytest.raises(errors.InvalidInput) as refused:
        await office.accounts.offer_factor(nora, WRONG_PASSWORD)
    assert pointers(refused) == ["/password"]
    assert await office.accounts.offered_factor(nora.staff.id) is None
    await office.accounts.offer_factor(nora, PASSWORD)
    secret = await office.accounts.offered_factor(nora.staff.id)
    assert secret is not None
    assert await office.is_signed_in(elsewhere)
    with pytest.raises(errors.InvalidInput) as refused:
        await office.accounts.confirm_factor(nora, "not it")
    assert pointers(refused) == ["/code"]
    code = await office.code(secret)
    await office.accounts.confirm_factor(nora, code)
    assert [one.id for one in await office.login.list_sessions(nora.staff.id)] == [nora.session_id]
    assert await office.accounts.offered_factor(nora.staff.id) is None
    with pytest.raises(errors.SecondFactorNeeded):
        await office.sign_in()
    with pytest.raises(errors.LoginFailed):
        await office.sign_in(code=code)


async def test_a_second_factor_is_removed_with_password_and_code_and_other_sessions_end(
    office: Office, nora: OwnAccount
) -> None:
    secret = await office.set_up_factor(nora)
    await office.accounts.offer_factor(nora, PASSWORD)
    assert await office.accounts.offered_factor(nora.staff.id) is None
    used = await office.code(secret)
    elsewhere = await office.sign_in(code=used)
    for password, code, fault in (
        (WRONG_PASSWORD, used, "/password"),
        (PASSWORD, "", "/code"),
        (PASSWORD, used, "/code"),
    ):
        with pytest.raises(errors.InvalidInput) as refused:
            await office.accounts.remove_factor(nora, password, code)
        assert pointers(refused) == [fault]
    assert await office.is_signed_in(elsewhere)
    await execute(office.database, "update staff set second_factor_step = 0")
    for _ in range(2):
        await office.accounts.remove_factor(nora, PASSWORD, used)
    assert [one.id for one in await office.login.list_sessions(nora.staff.id)] == [nora.session_id]
    assert await office.sign_in()
    assert await office.actions(nora.staff.id) == ["create", "set-second-factor", "remove-second-factor"]


async def test_a_code_is_not_found_out_by_trying_even_with_the_password(
    office: Office, nora: OwnAccount
) -> None:
    secret = await office.set_up_factor(nora)
    for _ in range(FREE_FAILURES):
        with pytest.raises(errors.InvalidInput):
            await office.accounts.remove_factor(nora, PASSWORD, "000000x")
        await office.accounts.offer_factor(nora, PASSWORD)
    with pytest.raises(errors.TooManyAttempts):
        await office.accounts.remove_factor(nora, PASSWORD, await office.code(secret))


async def test_a_second_factor_that_the_role_requires_is_not_removed(
    office: Office, nora: OwnAccount
) -> None:
    accounts = Accounts(office.database, office.box, Passwords(QUICK), [Role.ADMIN])
    assert accounts.lacks_factor(nora.staff)
    secret = await office.set_up_factor(nora)
    with pytest.raises(errors.InvalidInput, match="Your role requires a second factor"):
        await accounts.remove_factor(nora, PASSWORD, await office.code(secret))
    assert not accounts.lacks_factor(await office.staff.find(nora.staff.id))
    # Another role does not require one.
    viewer = nora._replace(staff=nora.staff._replace(role=Role.VIEWER))
    await accounts.remove_factor(viewer, PASSWORD, await office.code(secret))


@pytest.mark.parametrize("password", ["password123456", "Holdfast 2026!", "Sami Saleh 2026", "sami@example"])
async def test_a_password_that_is_easy_to_guess_is_refused_wherever_one_is_chosen(
    office: Office, password: str
) -> None:
    first = await create_first_setup_link(office.database)
    assert first is not None
    ways = [
        office.staff.add_first_admin(first, SAMI, "Sami Saleh", password, REQUEST),
        office.staff.add(SAMI, "Sami Saleh", Role.SALES, password, COMMAND),
    ]
    for chosen in ways:
        with pytest.raises(errors.InvalidInput):
            await chosen
    _, token = await office.staff.invite(SAMI, "Sami Saleh", Role.SALES, COMMAND)
    with pytest.raises(errors.InvalidInput):
        await office.staff.choose_password(token, password, REQUEST)
    await office.staff.choose_password(token, PASSWORD, REQUEST)
    own = await office.oneself(await office.sign_in(SAMI))
    with pytest.raises(errors.InvalidInput):
        await office.accounts.change_password(own, PASSWORD, password)


async def test_second_factors_are_sealed_anew_with_the_first_key(office: Office, nora: OwnAccount) -> None:
    old, new = new_encryption_key(), new_encryption_key()
    before = Accounts(office.database, SecretBox([old]), Passwords(QUICK))
    await before.offer_factor(nora, PASSWORD)
    secret = await before.offered_factor(nora.staff.id)
    assert await Accounts(office.database, SecretBox([new, old])).reencrypt() == 1
    assert await Accounts(office.database, SecretBox([new])).offered_factor(nora.staff.id) == secret
