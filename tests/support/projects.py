"""Projects, put straight into the database."""

from uuid import uuid4

from tests.support.client import Project
from tests.support.sql import Sql


def add_project(sql: Sql, slug: str | None = None) -> Project:
    """With this slug, or with one that nobody else has."""
    chosen = slug or f"tower-{uuid4().hex[:12]}"
    project = Project(str(uuid4()), chosen, f"The {chosen}")
    sql.execute("insert into project (id, slug, name) values ($1, $2, $3)", project.id, chosen, project.name)
    return project
