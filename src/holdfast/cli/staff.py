"""holdfast staff"""

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import click

from holdfast.cli.database import with_database
from holdfast.cli.output import (
    format_time,
    print_json,
    print_result,
    print_table,
    read_settings,
    shared_options,
    utf8_only,
)
from holdfast.domain.audit import COMMAND
from holdfast.domain.login import LONGEST_PASSWORD
from holdfast.domain.permissions import Role
from holdfast.domain.staff import Staff, default_name
from holdfast.operations.health import load_public_url
from holdfast.operations.staff import (
    SETUP_LINK_HOURS,
    Invited,
    StaffAccounts,
    invited_staff_document,
    setup_url,
    staff_document,
)
from holdfast.storage.database import Database

T = TypeVar("T")

_ONCE = f"The link works once, within {SETUP_LINK_HOURS} hours; whoever opens it chooses the password."
_email = click.argument("email", callback=utf8_only)


@click.group()
def staff() -> None:
    """Add, list, disable and reset the people of the back office."""


@staff.command()
@_email
@click.option("--role", required=True, type=click.Choice([str(role) for role in Role]))
@click.option("--name", callback=utf8_only, help="How others see them.  [default: EMAIL up to the @]")
@click.option("--password-stdin", is_flag=True, help="Read the password from stdin instead of making a link.")
@shared_options
def add(
    email: str, role: str, name: str | None, password_stdin: bool, data: Path | None, as_json: bool
) -> None:
    """Add somebody, and print the link on which they choose their password."""
    shown = default_name(email) if name is None else name
    if password_stdin:
        password = _read_password()
        added = _with_staff(data, lambda own: own.add(email, shown, Role(role), password, COMMAND))
        print_result(as_json, staff_document(added), f"Added {added.email} as {added.role}.")
        return
    _invite(data, as_json, lambda own: own.invite(email, shown, Role(role), COMMAND))


@staff.command("list")
@shared_options
def list_(data: Path | None, as_json: bool) -> None:
    """List everybody, those who are disabled included."""
    found = _with_staff(data, lambda own: own.all())
    if as_json:
        print_json({"staff": [staff_document(one) for one in found]})
        return
    headings = ("E-MAIL", "NAME", "ROLE", "STATE", "SECOND FACTOR", "LAST SIGN-IN")
    print_table(headings, [_row(one) for one in found], if_empty="There is no staff yet.")


@staff.command()
@_email
@shared_options
def disable(email: str, data: Path | None, as_json: bool) -> None:
    """Sign somebody out everywhere, and keep them out."""
    changed = _set_disabled(data, email, True)
    print_result(as_json, staff_document(changed), f"{changed.email} is disabled and signed out.")


@staff.command()
@_email
@shared_options
def enable(email: str, data: Path | None, as_json: bool) -> None:
    """Let somebody who was disabled sign in again."""
    changed = _set_disabled(data, email, False)
    print_result(as_json, staff_document(changed), f"{changed.email} may sign in.")


@staff.command()
@_email
@shared_options
def reset(email: str, data: Path | None, as_json: bool) -> None:
    """Sign somebody out, remove password and second factor, and print a new set-up link."""

    async def renew(own: StaffAccounts) -> Invited:
        return await own.reset((await own.find_by_email(email)).id, COMMAND)

    _invite(data, as_json, renew)


def _invite(data: Path | None, as_json: bool, work: Callable[[StaffAccounts], Awaitable[Invited]]) -> None:
    settings = read_settings(data)

    async def use(database: Database) -> tuple[Staff, str]:
        address = settings.public_url or await load_public_url(database)
        person, token = await work(StaffAccounts(database))
        return person, setup_url(address, token)

    person, url = with_database(data, use)
    if as_json:
        print_json(invited_staff_document(person, url))
        return
    click.echo(url)
    click.echo(_ONCE, err=True)


def _set_disabled(data: Path | None, email: str, disabled: bool) -> Staff:
    async def change(own: StaffAccounts) -> Staff:
        person = await own.find_by_email(email)
        return await own.change(person.id, {"disabled": disabled}, COMMAND)

    return _with_staff(data, change)


def _with_staff(data: Path | None, work: Callable[[StaffAccounts], Awaitable[T]]) -> T:
    return with_database(data, lambda database: work(StaffAccounts(database)))


def _read_password() -> str:
    """Read one line, no longer than a password can be."""
    line = sys.stdin.buffer.readline(8 * LONGEST_PASSWORD)
    try:
        return line.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise click.UsageError("The password on stdin is not UTF-8.") from None


def _row(one: Staff) -> tuple[str, ...]:
    factor = "yes" if one.has_second_factor else "no"
    return one.email, one.name, one.role, _state(one), factor, format_time(one.last_signed_in_at)


def _state(one: Staff) -> str:
    if one.disabled_at is not None:
        return f"disabled {format_time(one.disabled_at)}"
    return "active" if one.has_password else "invited"
