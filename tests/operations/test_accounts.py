"""People change their own name, password, second factor and preferences."""

import pytest

from holdfast.domain.errors import InvalidInput, LoginFailed, SecondFactorNeeded, TooManyAttempts
from holdfast.domain.login import FREE_FAILURES
from holdfast.domain.staff import Preferences, Theme
from holdfast.operations.staff import Accounts, OwnAccount
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox, new_encryption_key
from tests.support.staff import PASSWORD, Office, open_office

NEW_PASSWORD = "another horse of lead"


@pytest.fixture
async def office(database: Database) -> Office:
    office = open_office(database)
    await office.add()
    return office


@pytest.fixture
async def nora(office: Office) -> OwnAccount:
    return await office.oneself(await office.sign_in())


async def test_a_new_name_is_kept_and_written_down(office: Office, nora: OwnAccount) -> None:
    assert (await office.accounts.rename(nora, " Nora Al-Harbi ")).name == "Nora Al-Harbi"
    await office.accounts.rename(nora, "Nora Al-Harbi")
    with pytest.raises(InvalidInput):
        await office.accounts.rename(nora, " ")
    assert await office.actions(nora.staff.id) == ["create", "change"]


async def test_preferences_are_kept(office: Office, nora: OwnAccount) -> None:
    wanted = Preferences("ar", "arab", Theme.DARK)
    assert (await office.accounts.set_preferences(nora.staff.id, wanted)).preferences == wanted
    assert (await office.staff.find(nora.staff.id)).preferences == wanted


async def test_a_new_password_ends_all_other_sessions(office: Office, nora: OwnAccount) -> None:
    elsewhere = await office.sign_in()
    await office.accounts.change_password(nora, PASSWORD, NEW_PASSWORD)
    assert not await office.is_signed_in(elsewhere)
    assert [one.id for one in await office.login.list_sessions(nora.staff.id)] == [nora.session_id]
    with pytest.raises(LoginFailed):
        await office.sign_in()
    assert await office.sign_in(password=NEW_PASSWORD)


async def test_the_old_password_must_be_right_and_the_new_one_good(office: Office, nora: OwnAccount) -> None:
    with pytest.raises(InvalidInput) as wrong:
        await office.accounts.change_password(nora, "a horse of leaf", NEW_PASSWORD)
    assert [fault.pointer for fault in wrong.value.faults] == ["/password"]
    with pytest.raises(InvalidInput) as weak:
        await office.accounts.change_password(nora, PASSWORD, "short")
    assert [fault.pointer for fault in weak.value.faults] == ["/newPassword"]
    assert await office.sign_in()


async def test_a_password_is_not_found_out_by_trying(office: Office, nora: OwnAccount) -> None:
    for _ in range(FREE_FAILURES):
        with pytest.raises(InvalidInput):
            await office.accounts.remove_factor(nora, "a horse of leaf")
    with pytest.raises(TooManyAttempts):
        await office.accounts.remove_factor(nora, PASSWORD)


async def test_a_second_factor_counts_once_it_is_confirmed(office: Office, nora: OwnAccount) -> None:
    assert await office.accounts.offered_factor(nora.staff.id) is None
    await office.accounts.offer_factor(nora, PASSWORD)
    secret = await office.accounts.offered_factor(nora.staff.id)
    assert secret is not None
    assert await office.sign_in()
    with pytest.raises(InvalidInput) as wrong:
        await office.accounts.confirm_factor(nora, "not it")
    assert [fault.pointer for fault in wrong.value.faults] == ["/code"]
    await office.accounts.confirm_factor(nora, await office.code(secret))
    with pytest.raises(SecondFactorNeeded):
        await office.sign_in()
    assert await office.accounts.offered_factor(nora.staff.id) is None


async def test_a_second_factor_is_offered_for_the_password_alone(office: Office, nora: OwnAccount) -> None:
    with pytest.raises(InvalidInput) as wrong:
        await office.accounts.offer_factor(nora, "a horse of leaf")
    assert [fault.pointer for fault in wrong.value.faults] == ["/password"]
    assert await office.accounts.offered_factor(nora.staff.id) is None


async def test_a_second_factor_ends_the_sessions_that_were_opened_without_it(
    office: Office, nora: OwnAccount
) -> None:
    elsewhere = await office.sign_in()
    await office.set_up_factor(nora)
    assert not await office.is_signed_in(elsewhere)
    assert [one.id for one in await office.login.list_sessions(nora.staff.id)] == [nora.session_id]


async def test_what_confirmed_a_second_factor_does_not_open_a_session(
    office: Office, nora: OwnAccount
) -> None:
    await office.accounts.offer_factor(nora, PASSWORD)
    secret = await office.accounts.offered_factor(nora.staff.id)
    assert secret is not None
    code = await office.code(secret)
    await office.accounts.confirm_factor(nora, code)
    with pytest.raises(LoginFailed):
        await office.sign_in(code=code)


async def test_a_second_factor_is_removed_with_the_password_and_before_another_is_set(
    office: Office, nora: OwnAccount
) -> None:
    await office.set_up_factor(nora)
    await office.accounts.offer_factor(nora, PASSWORD)
    assert await office.accounts.offered_factor(nora.staff.id) is None
    with pytest.raises(InvalidInput):
        await office.accounts.remove_factor(nora, "a horse of leaf")
    await office.accounts.remove_factor(nora, PASSWORD)
    assert await office.sign_in()
    assert await office.actions(nora.staff.id) == ["create", "set-second-factor", "remove-second-factor"]


async def test_second_factors_are_sealed_anew_with_the_first_key(office: Office, nora: OwnAccount) -> None:
    old, new = new_encryption_key(), new_encryption_key()
    before = Accounts(office.database, SecretBox([old]))
    await before.offer_factor(nora, PASSWORD)
    secret = await before.offered_factor(nora.staff.id)
    assert await Accounts(office.database, SecretBox([new, old])).reencrypt() == 1
    assert await Accounts(office.database, SecretBox([new])).offered_factor(nora.staff.id) == secret
