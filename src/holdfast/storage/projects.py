"""Projects."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID, uuid4

import asyncpg

from holdfast.domain.errors import ProjectExists, UnknownProject
from holdfast.domain.project import Project
from holdfast.storage.database import Connection, ProjectCache, fetch_one

_INSERT = "insert into project (id, slug, name) values ($1, $2, $3) returning *"
_UPDATE = """
    update project
    set name = $2, hold_seconds = $3, reservation_days = $4, turn = turn + 1,
        version = version + (name <> $2)::int
    where id = $1 returning *
"""
_GET_LOCKED = "select * from project where id = $1 for no key update"
_FIND_ID = "select id from project where slug = $1"
_FIND_IDS = "select id from project where slug = any($1::text[])"
_GET = "select * from project where id = $1"
_GET_MANY = "select * from project where id = any($1::uuid[])"
_LIST = """
    select * from project
    where ($1::text[] is null or slug = any($1)) and slug > $2
    order by slug limit $3
"""


async def refresh_project_cache(
    connection: Connection, known: ProjectCache, turns: Mapping[UUID, int]
) -> None:
    """Read the projects that have changed since they were cached; a later state is as good."""
    unknown = [
        project_id
        for project_id, turn in turns.items()
        if project_id not in known or known[project_id].turn != turn
    ]
    if unknown:
        rows = await connection.fetch(_GET_MANY, unknown)
        known.update((row["id"], _project(row)) for row in rows)


async def insert(connection: Connection, slug: str, name: str) -> Project:
    try:
        row = await fetch_one(connection, _INSERT, uuid4(), slug, name)
    except asyncpg.UniqueViolationError as refused:
        raise ProjectExists(slug) from refused
    return _project(row)


async def find_id(connection: Connection, slug: str) -> UUID | None:
    project_id: UUID | None = await connection.fetchval(_FIND_ID, slug)
    return project_id


def within(argument: int) -> str:
    """A condition: of one of these projects, or of none, as pings are. Null stands for no limit."""
    ids = f"${argument}::uuid[]"
    return f"({ids} is null or project_id is null or project_id = any({ids}))"


async def find_ids(connection: Connection, slugs: Sequence[str] | None) -> list[UUID] | None:
    """What ``within`` takes, for a caller who is limited to these projects; None: to none."""
    if slugs is None:
        return None
    return [row[0] for row in await connection.fetch(_FIND_IDS, slugs)]


async def require_ids(
    connection: Connection, slugs: Iterable[str], allowed: Collection[str] | None = None
) -> list[UUID]:
    """Return the ids of projects by slug. Those outside ``allowed`` do not exist; None allows all."""
    ids = []
    for slug in dict.fromkeys(slugs):
        project_id = await find_id(connection, slug) if allowed is None or slug in allowed else None
        if project_id is None:
            raise UnknownProject(slug)
        ids.append(project_id)
    return ids


async def get(connection: Connection, project_id: UUID) -> Project:
    return _project(await fetch_one(connection, _GET, project_id))


async def get_locked(connection: Connection, project_id: UUID) -> Project:
    return _project(await fetch_one(connection, _GET_LOCKED, project_id))


async def update(connection: Connection, project: Project) -> Project:
    row = await fetch_one(
        connection, _UPDATE, project.id, project.name, project.hold_seconds, project.reservation_days
    )
    return _project(row)


async def list_page(
    connection: Connection, slugs: tuple[str, ...] | None, after: str, limit: int
) -> list[Project]:
    rows = await connection.fetch(_LIST, slugs, after, limit)
    return [_project(row) for row in rows]


def _project(row: asyncpg.Record) -> Project:
    return Project(*(row[name] for name in Project._fields))
