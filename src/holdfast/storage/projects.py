"""Projects."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from uuid import UUID, uuid4

from holdfast.domain.errors import ProjectExists, UnknownProject
from holdfast.domain.project import COUNTED_BELOW, Project
from holdfast.storage.database import Connection, ProjectCache, fetch_one

_COLUMNS = ", ".join(Project._fields)

# After a recovery that lost changes, a project of the same slug may have been lost. The versions of the new
# one, which ETags and boards show, go on from beyond those, as the feed does.
_INSERT = f"""
    insert into project (id, slug, name, version, turn, layout_turn)
    select $1, $2, $3, start, start, start from (
        select case when last_position < {COUNTED_BELOW} then 1 else last_position end as start
        from event_feed
    ) as feed
    on conflict (slug) do nothing
    returning {_COLUMNS}
"""
_UPDATE = f"""
    update project
    set name = $2, hold_seconds = $3, reservation_days = $4, listed = $5, turn = turn + 1,
        version = version + (name <> $2)::int
    where id = $1 returning {_COLUMNS}
"""
_FIND_IDS = "select slug, id from project where slug = any($1::text[])"
_GET = f"select {_COLUMNS} from project where id = $1"
_GET_LOCKED = f"{_GET} for no key update"
_GET_MANY = f"select {_COLUMNS} from project where id = any($1::uuid[])"
_LIST = f"""
    select {_COLUMNS} from project
    where ($1::text[] is null or slug = any($1)) and slug > $2 and (listed or not $4)
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
        known.update((row[0], Project(*row)) for row in rows)


async def insert(connection: Connection, slug: str, name: str) -> Project:
    row = await connection.fetchrow(_INSERT, uuid4(), slug, name)
    if row is None:
        raise ProjectExists(slug)
    return Project(*row)


async def find_ids(connection: Connection, slugs: Sequence[str] | None) -> list[UUID] | None:
    """Return the ids of the projects that a caller is limited to; None without a limit."""
    return None if slugs is None else list((await _ids_by_slug(connection, slugs)).values())


async def require_ids(
    connection: Connection, slugs: Iterable[str], allowed: Collection[str] | None = None
) -> list[UUID]:
    """Return the ids of projects by slug. Those outside ``allowed`` do not exist; None allows all."""
    slugs = list(dict.fromkeys(slugs))
    found = await _ids_by_slug(connection, slugs)
    for slug in slugs:
        if slug not in found or (allowed is not None and slug not in allowed):
            raise UnknownProject(slug)
    return [found[slug] for slug in slugs]


async def _ids_by_slug(connection: Connection, slugs: Sequence[str]) -> dict[str, UUID]:
    return {row[0]: row[1] for row in await connection.fetch(_FIND_IDS, slugs)}


async def get(connection: Connection, project_id: UUID, *, lock: bool = False) -> Project:
    return Project(*await fetch_one(connection, _GET_LOCKED if lock else _GET, project_id))


async def update(connection: Connection, project: Project) -> Project:
    values = (project.name, project.hold_seconds, project.reservation_days, project.listed)
    return Project(*await fetch_one(connection, _UPDATE, project.id, *values))


async def list_page(
    connection: Connection, slugs: tuple[str, ...] | None, after: str, limit: int, *, listed: bool = False
) -> list[Project]:
    return [Project(*row) for row in await connection.fetch(_LIST, slugs, after, limit, listed)]
