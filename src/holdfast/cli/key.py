"""holdfast key"""

from pathlib import Path
from typing import Any
from uuid import UUID

import click

from holdfast.cli.database import with_database
from holdfast.cli.output import print_json, print_table, shared_options, shown_time, wire_time
from holdfast.domain.access import Key, Scope
from holdfast.operations import administering


@click.group()
def key() -> None:
    """Add, list and revoke API keys."""


@key.command()
@click.option("--name", required=True, help="What the key is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([str(scope) for scope in Scope]),
    help="What the key opens; may be repeated.  [default: integration]",
)
@click.option(
    "--project", "projects", multiple=True, metavar="SLUG", help="Limit it to projects; may be repeated."
)
@click.option(
    "--expires", type=click.FloatRange(min=0, min_open=True), metavar="DAYS", help="Days it is good for."
)
@shared_options
def add(
    name: str,
    scopes: tuple[str, ...],
    projects: tuple[str, ...],
    expires: float | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Add a key and print it, this once."""
    wanted = [Scope(scope) for scope in scopes] or [Scope.INTEGRATION]
    issued = with_database(
        data, lambda database: administering.issue_key(database, name, wanted, projects, expires)
    )
    if as_json:
        print_json(_issued_document(issued.key, issued.text))
        return
    click.echo(issued.text)
    click.echo("This is the only time that the key is shown; keep it as you keep a password.", err=True)


@key.command("list")
@shared_options
def list_(data: Path | None, as_json: bool) -> None:
    """List the keys, without what opens the door."""
    keys = with_database(data, administering.list_keys)
    if as_json:
        print_json({"keys": [_document(one) for one in keys]})
        return
    headings = ("NAME", "KEY", "SCOPES", "PROJECTS", "STATE", "LAST USED", "ID")
    print_table(headings, [_row(one) for one in keys], if_empty="There are no keys yet.")


@key.command()
@click.argument("key_id", metavar="ID", type=click.UUID)
@shared_options
def revoke(key_id: UUID, data: Path | None, as_json: bool) -> None:
    """Revoke the key with this ID."""
    revoked = with_database(data, lambda database: administering.revoke_key(database, key_id))
    if as_json:
        print_json(_document(revoked))
    else:
        click.echo(f"Revoked the key {revoked.name} ({revoked.hint}…).")


def _issued_document(one: Key, text: str) -> dict[str, Any]:
    shown = _document(one)
    return {
        "id": shown["id"],
        "name": shown["name"],
        "key": text,
        **{name: shown[name] for name in ("hint", "scopes", "projects", "createdAt", "expiresAt")},
    }


def _document(one: Key) -> dict[str, Any]:
    return {
        "id": str(one.id),
        "name": one.name,
        "hint": one.hint,
        "scopes": [str(scope) for scope in Scope if scope in one.scopes],
        "projects": None if one.project_slugs is None else list(one.project_slugs),
        "createdAt": wire_time(one.created_at),
        "expiresAt": wire_time(one.expires_at),
        "revokedAt": wire_time(one.revoked_at),
        "lastUsedAt": wire_time(one.last_used_at),
    }


def _row(one: Key) -> tuple[str, ...]:
    shown = _document(one)
    projects = "all" if shown["projects"] is None else ", ".join(shown["projects"])
    last_used = shown_time(one.last_used_at)
    return one.name, f"{one.hint}…", ", ".join(shown["scopes"]), projects, _state(one), last_used, shown["id"]


def _state(one: Key) -> str:
    if one.revoked_at is not None:
        return f"revoked {shown_time(one.revoked_at)}"
    return "valid" if one.expires_at is None else f"expires {shown_time(one.expires_at)}"
