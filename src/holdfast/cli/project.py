"""holdfast project"""

from pathlib import Path
from typing import Any

import click

from holdfast.cli.database import with_database
from holdfast.cli.output import format_time, print_json, print_table, shared_options, wire_time
from holdfast.domain.project import Project
from holdfast.operations import projects


@click.group()
def project() -> None:
    """Add and list projects."""


@project.command()
@click.argument("slug")
@click.option("--name", required=True, help="The name that people see.")
@shared_options
def add(slug: str, name: str, data: Path | None, as_json: bool) -> None:
    """Add a project, addressed by SLUG."""
    added = with_database(data, lambda database: projects.add_project(database, slug, name))
    if as_json:
        print_json(_document(added))
    else:
        click.echo(f"Added the project {added.slug} ({added.name}).")


@project.command("list")
@shared_options
def list_(data: Path | None, as_json: bool) -> None:
    """List the projects."""
    found = with_database(data, projects.list_projects)
    if as_json:
        print_json({"projects": [_document(one) for one in found]})
        return
    rows = [(one.slug, one.name, format_time(one.created_at), str(one.id)) for one in found]
    print_table(("SLUG", "NAME", "CREATED", "ID"), rows, if_empty="There are no projects yet.")


def _document(one: Project) -> dict[str, Any]:
    return {"id": str(one.id), "slug": one.slug, "name": one.name, "createdAt": wire_time(one.created_at)}
