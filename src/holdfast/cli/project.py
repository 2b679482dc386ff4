"""holdfast project, holdfast key"""

from uuid import UUID

import click

from holdfast.cli.database import database_command
from holdfast.cli.output import Output, choices_option, format_table, format_time, projects_option
from holdfast.domain.api_key import Key, Scope
from holdfast.domain.project import Project
from holdfast.domain.wire_format import format_timestamp
from holdfast.operations import api_keys
from holdfast.operations import projects as project_operations
from holdfast.storage.database import Database


@click.group()
def project() -> None:
    """Add and list projects."""


@project.command("add")
@click.argument("slug")
@click.option("--name", required=True, help="The name that pages show.")
@database_command
async def add_project(database: Database, slug: str, name: str) -> Output:
    """Add a project, addressed by SLUG."""
    added = await project_operations.add_project(database, slug, name)
    return Output(_project_document(added), f"Added the project {added.slug} ({added.name}).")


@project.command("list")
@database_command
async def list_projects(database: Database) -> Output:
    """List the projects."""
    projects = await project_operations.list_projects(database)
    rows = [(each.slug, each.name, format_time(each.created_at), str(each.id)) for each in projects]
    text = format_table(("SLUG", "NAME", "CREATED", "ID"), rows, if_empty="There are no projects yet.")
    return Output({"projects": [_project_document(each) for each in projects]}, text)


def _project_document(project: Project) -> dict[str, str]:
    created_at = format_timestamp(project.created_at)
    return {"id": str(project.id), "slug": project.slug, "name": project.name, "createdAt": created_at}


@click.group()
def key() -> None:
    """Add, list and revoke API keys."""


@key.command("add")
@click.option("--name", required=True, help="What the key is for.")
@choices_option("--scope", "scopes", Scope, "A scope of the key; may be repeated.  [default: integration]")
@projects_option
@click.option(
    "--expires", type=click.FloatRange(min=0, min_open=True), metavar="DAYS", help="Days until it expires."
)
@database_command
async def add_key(
    database: Database, name: str, scopes: tuple[str, ...], projects: tuple[str, ...], expires: float | None
) -> Output:
    """Add a key and print it, once."""
    chosen = [Scope(scope) for scope in scopes] or [Scope.INTEGRATION]
    issued = await api_keys.issue(database, api_keys.NewApiKey(name, chosen, projects, expires))
    note = "This is the only time that the key is shown; keep it as you keep a password."
    return Output(api_keys.issued_key_document(issued), issued.text, note)


@key.command("list")
@database_command
async def list_keys(database: Database) -> Output:
    """List the keys, without the keys themselves."""
    keys = await api_keys.list_all(database)
    headings = ("NAME", "KEY", "SCOPES", "PROJECTS", "STATE", "LAST USED", "ID")
    text = format_table(headings, [_key_row(each) for each in keys], if_empty="There are no keys yet.")
    return Output({"keys": [api_keys.key_document(each) for each in keys]}, text)


@key.command("revoke")
@click.argument("key_id", metavar="ID", type=click.UUID)
@database_command
async def revoke_key(database: Database, key_id: UUID) -> Output:
    """Revoke the key with this ID."""
    revoked = await api_keys.revoke(database, key_id)
    return Output(api_keys.key_document(revoked), f"Revoked the key {revoked.name} ({revoked.hint}…).")


def _key_row(key: Key) -> tuple[str, ...]:
    scopes = ", ".join(scope for scope in Scope if scope in key.scopes)
    projects = "all" if key.project_slugs is None else ", ".join(key.project_slugs)
    state = "valid" if key.expires_at is None else f"expires {format_time(key.expires_at)}"
    if key.revoked_at is not None:
        state = f"revoked {format_time(key.revoked_at)}"
    return key.name, f"{key.hint}…", scopes, projects, state, format_time(key.last_used_at), str(key.id)
