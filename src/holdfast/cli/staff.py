"""holdfast staff"""

import sys

import click

from holdfast.cli.database import database_command
from holdfast.cli.output import Output, check_utf8, format_table, format_time, read_settings
from holdfast.domain.audit import COMMAND
from holdfast.domain.login import LONGEST_PASSWORD
from holdfast.domain.permissions import Role
from holdfast.domain.staff import Staff, default_name
from holdfast.operations import staff as staff_operations
from holdfast.operations.health import load_public_url
from holdfast.storage.database import Database

_email = click.argument("email", callback=check_utf8)


@click.group()
def staff() -> None:
    """Add, list, disable and reset back-office accounts."""


def _read_password() -> str:
    """Read one line, no longer than a password can be."""
    line = sys.stdin.buffer.readline(8 * LONGEST_PASSWORD)
    try:
        return line.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise click.UsageError("The password on stdin is not UTF-8.") from None


@staff.command()
@_email
@click.option("--role", required=True, type=click.Choice([str(role) for role in Role]))
@click.option("--name", callback=check_utf8, help="The name that others see.  [default: EMAIL up to the @]")
@click.option("--password-stdin", is_flag=True, help="Read the password from stdin; print no link.")
@database_command
async def add(database: Database, email: str, role: str, name: str | None, password_stdin: bool) -> Output:
    """Add a person, and print the link to choose a password."""
    accounts, name = staff_operations.StaffAccounts(database), default_name(email) if name is None else name
    if not password_stdin:
        address = await _load_address(database)
        return _setup_link(address, await accounts.invite(email, name, Role(role), COMMAND))
    added = await accounts.add(email, name, Role(role), _read_password(), COMMAND)
    return Output(staff_operations.staff_document(added), f"Added {added.email} as {added.role}.")


@staff.command("list")
@database_command
async def list_(database: Database) -> Output:
    """List the staff, including disabled accounts."""
    accounts = await staff_operations.StaffAccounts(database).all()
    headings = ("E-MAIL", "NAME", "ROLE", "STATE", "SECOND FACTOR", "LAST SIGN-IN")
    text = format_table(headings, [_row(each) for each in accounts], if_empty="There is no staff yet.")
    return Output({"staff": [staff_operations.staff_document(each) for each in accounts]}, text)


@staff.command()
@_email
@database_command
async def disable(database: Database, email: str) -> Output:
    """End all sessions of a person and lock the account."""
    changed = await _set_disabled(database, email, True)
    return Output(staff_operations.staff_document(changed), f"{changed.email} is disabled and signed out.")


@staff.command()
@_email
@database_command
async def enable(database: Database, email: str) -> Output:
    """Unlock the account of a person."""
    changed = await _set_disabled(database, email, False)
    return Output(staff_operations.staff_document(changed), f"{changed.email} can sign in again.")


@staff.command()
@_email
@database_command
async def reset(database: Database, email: str) -> Output:
    """End all sessions, remove password and second factor, and print a new set-up link."""
    accounts, address = staff_operations.StaffAccounts(database), await _load_address(database)
    account = await accounts.find_by_email(email)
    return _setup_link(address, await accounts.reset(account.id, COMMAND))


async def _set_disabled(database: Database, email: str, disabled: bool) -> Staff:
    accounts = staff_operations.StaffAccounts(database)
    account = await accounts.find_by_email(email)
    return await accounts.change(account.id, {"disabled": disabled}, COMMAND)


async def _load_address(database: Database) -> str:
    return read_settings().public_url or await load_public_url(database)


def _setup_link(address: str, invited: staff_operations.Invited) -> Output:
    url, hours = staff_operations.setup_url(address, invited.token), staff_operations.SETUP_LINK_HOURS
    note = f"The link works once, within {hours} hours; anyone who opens it chooses the password."
    return Output(staff_operations.invited_staff_document(invited.staff, url), url, note)


def _row(account: Staff) -> tuple[str, ...]:
    state = "active" if account.has_password else "invited"
    if account.disabled_at is not None:
        state = f"disabled {format_time(account.disabled_at)}"
    factor = "yes" if account.has_second_factor else "no"
    last_sign_in = format_time(account.last_signed_in_at)
    return account.email, account.name, account.role, state, factor, last_sign_in
