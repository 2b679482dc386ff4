"""What an operator does at the console: projects and keys."""

from collections.abc import Sequence
from uuid import UUID

from holdfast.domain.api_key import IssuedKey, Key, Scope
from holdfast.domain.audit import COMMAND, Author, Change, Entry
from holdfast.domain.project import Project, name_fault, slug_fault
from holdfast.operations.keys import OF_THE_CONSOLE, Keys, KeyWishes, refuse_faults
from holdfast.storage import api_keys, audit, projects
from holdfast.storage.database import Database

_PROJECTS_A_PAGE = 1000


async def add_project(database: Database, slug: str, name: str, author: Author = COMMAND) -> Project:
    refuse_faults([slug_fault(slug, "/slug"), name_fault(name)])
    async with database.writing() as connection:
        project = await projects.insert(connection, slug, name)
        change = Change(None, {"slug": slug, "name": name})
        at = project.created_at
        await audit.insert(connection, Entry(project.id, project.id, at, author, "create", None, change))
    return project


async def list_projects(database: Database) -> list[Project]:
    found: list[Project] = []
    async with database.reading() as connection:
        while page := await projects.list_page(
            connection, None, found[-1].slug if found else "", _PROJECTS_A_PAGE
        ):
            found += page
    return found


async def issue_key(
    database: Database,
    name: str,
    scopes: Sequence[Scope] = (Scope.INTEGRATION,),
    project_slugs: Sequence[str] = (),
    expires_in_days: float | None = None,
) -> IssuedKey:
    wishes = KeyWishes(name, scopes, project_slugs or None, expires_in_days)
    return await Keys(database).issue(wishes, OF_THE_CONSOLE, COMMAND)


async def list_keys(database: Database) -> list[Key]:
    async with database.reading() as connection:
        return await api_keys.list_all(connection)


async def revoke_key(database: Database, key_id: UUID) -> Key:
    return await Keys(database).revoke(key_id, COMMAND)


async def revoke_keys_named(database: Database, name: str) -> None:
    await Keys(database).revoke_named(name, COMMAND)
