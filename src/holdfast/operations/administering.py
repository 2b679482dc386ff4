"""What an operator does: projects and keys."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from holdfast.domain.access import IssuedKey, Key, Scope, key_hash, key_hint, new_key_text
from holdfast.domain.audit import COMMAND, Author, Change, Entry
from holdfast.domain.project import NAME_LENGTH, Project, slug_fault
from holdfast.domain.refusals import Fault, InvalidInput, UnknownKey, UnknownProject
from holdfast.storage import access, audit, projects
from holdfast.storage.database import Database

_LONGEST_EXPIRY_DAYS = 36_500
_PROJECTS_A_PAGE = 1000


async def add_project(database: Database, slug: str, name: str, author: Author = COMMAND) -> Project:
    faults = [slug_fault(slug, "/slug"), name_fault(name)]
    _refuse_faults(faults)
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
    _refuse_faults([name_fault(name), _expiry_fault(expires_in_days)])
    text = new_key_text()
    expires_in = None if expires_in_days is None else timedelta(days=expires_in_days)
    async with database.writing() as connection:
        project_ids = []
        for slug in dict.fromkeys(project_slugs):
            project_id = await projects.find_id(connection, slug)
            if project_id is None:
                raise UnknownProject(slug)
            project_ids.append(project_id)
        unique_scopes = list(dict.fromkeys(scopes))
        key = await access.insert(
            connection, name, key_hint(text), key_hash(text), unique_scopes, project_ids, expires_in
        )
    return IssuedKey(key, text)


async def list_keys(database: Database) -> list[Key]:
    async with database.reading() as connection:
        return await access.list_all(connection)


async def revoke_key(database: Database, key_id: UUID) -> Key:
    async with database.writing() as connection:
        await access.revoke(connection, key_id)
        key = await access.find(connection, key_id)
    if key is None:
        raise UnknownKey(key_id)
    return key


async def revoke_keys_named(database: Database, name: str) -> None:
    async with database.writing() as connection:
        await access.revoke_named(connection, name)


def name_fault(name: str) -> Fault | None:
    shortest, longest = NAME_LENGTH
    if shortest <= len(name) <= longest and name.isprintable() and name == name.strip():
        return None
    return Fault("/name", f"A name is printable text of {shortest} to {longest} characters.")


def _expiry_fault(days: float | None) -> Fault | None:
    if days is None or 0 < days <= _LONGEST_EXPIRY_DAYS:
        return None
    return Fault("/expires", f"A key expires after more than 0 and at most {_LONGEST_EXPIRY_DAYS} days.")


def _refuse_faults(faults: Sequence[Fault | None]) -> None:
    found = [fault for fault in faults if fault is not None]
    if found:
        raise InvalidInput(found)
