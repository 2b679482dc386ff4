"""holdfast project, holdfast key"""

from pathlib import Path
from uuid import UUID

import click

from holdfast.cli.database import with_database
from holdfast.cli.output import (
    format_time,
    limited_to_projects,
    print_json,
    print_result,
    print_table,
    shared_options,
    wire_time,
)
from holdfast.domain.api_key import Key, Scope
from holdfast.domain.project import Project
from holdfast.operations import api_keys, projects
from holdfast.operations.api_keys import issued_key_document, key_document


@click.group()
def project() -> None:
    """Add and list projects."""


@project.command("add")
@click.argument("slug")
@click.option("--name", required=True, help="The name that people see.")
@shared_options
def add_project(slug: str, name: str, data: Path | None, as_json: bool) -> None:
    """Add a project, addressed by SLUG."""
    added = with_database(data, lambda database: projects.add_project(database, slug, name))
    print_result(as_json, _document(added), f"Added the project {added.slug} ({added.name}).")


@project.command("list")
@shared_options
def list_projects(data: Path | None, as_json: bool) -> None:
    """List the projects."""
    found = with_database(data, projects.list_projects)
    if as_json:
        print_json({"projects": [_document(one) for one in found]})
        return
    rows = [(one.slug, one.name, format_time(one.created_at), str(one.id)) for one in found]
    print_table(("SLUG", "NAME", "CREATED", "ID"), rows, if_empty="There are no projects yet.")


def _document(one: Project) -> dict[str, object]:
    return {"id": str(one.id), "slug": one.slug, "name": one.name, "createdAt": wire_time(one.created_at)}


@click.group()
def key() -> None:
    """Add, list and revoke API keys."""


@key.command("add")
@click.option("--name", required=True, help="What the key is for.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice([str(scope) for scope in Scope]),
    help="What the key opens; may be repeated.  [default: integration]",
)
@limited_to_projects
@click.option(
    "--expires", type=click.FloatRange(min=0, min_open=True), metavar="DAYS", help="Days it is good for."
)
@shared_options
def add_key(
    name: str,
    scopes: tuple[str, ...],
    projects: tuple[str, ...],
    expires: float | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Add a key and print it, this once."""
    chosen = [Scope(scope) for scope in scopes] or [Scope.INTEGRATION]
    issued = with_database(
        data, lambda database: api_keys.issue_key(database, name, chosen, projects, expires)
    )
    if as_json:
        print_json(issued_key_document(issued))
        return
    click.echo(issued.text)
    click.echo("This is the only time that the key is shown; keep it as you keep a password.", err=True)


@key.command("list")
@shared_options
def list_keys(data: Path | None, as_json: bool) -> None:
    """List the keys, without what opens the door."""
    keys = with_database(data, api_keys.list_keys)
    if as_json:
        print_json({"keys": [key_document(one) for one in keys]})
        return
    headings = ("NAME", "KEY", "SCOPES", "PROJECTS", "STATE", "LAST USED", "ID")
    print_table(headings, [_row(one) for one in keys], if_empty="There are no keys yet.")


@key.command("revoke")
@click.argument("key_id", metavar="ID", type=click.UUID)
@shared_options
def revoke_key(key_id: UUID, data: Path | None, as_json: bool) -> None:
    """Revoke the key with this ID."""
    revoked = with_database(data, lambda database: api_keys.revoke_key(database, key_id))
    print_result(as_json, key_document(revoked), f"Revoked the key {revoked.name} ({revoked.hint}…).")


def _row(one: Key) -> tuple[str, ...]:
    scopes = ", ".join(scope for scope in Scope if scope in one.scopes)
    projects = "all" if one.project_slugs is None else ", ".join(one.project_slugs)
    last_used = format_time(one.last_used_at)
    return one.name, f"{one.hint}…", scopes, projects, _state(one), last_used, str(one.id)


def _state(one: Key) -> str:
    if one.revoked_at is not None:
        return f"revoked {format_time(one.revoked_at)}"
    return "valid" if one.expires_at is None else f"expires {format_time(one.expires_at)}"
