"""The schema is brought up to date safely, or the database is refused with one sentence."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from holdfast.domain.audit import COMMAND
from holdfast.domain.errors import DatabaseUnavailable
from holdfast.domain.status import Status
from holdfast.operations.booking_commands import HoldUnit
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import Units
from holdfast.operations.write_path import WriteResult, write
from holdfast.storage import schema
from holdfast.storage.database import Database
from holdfast.storage.embedded.cluster import program_folder
from holdfast.storage.errors import SchemaError
from tests.support.clusters import NEWEST, Cluster
from tests.support.inventory import replacement
from tests.support.sales import new_opening
from tests.support.server import HOLDFAST, environment
from tests.support.sql import Sql, with_database

BASELINE = "0012"
REVISIONS = [BASELINE, "0013", "0014", "0015"]
# Made by the revisions that the baseline replaced.
SCHEMA_BEFORE = (Path(__file__).parent / "schema_0012.sql").read_text()
MIGRATING_AT_ONCE = 6

FILLED = """
    insert into project (id, slug, name) values (gen_random_uuid(), 'palm-court', 'Palm Court');
    insert into unit (id, project_id, code, type, area_sqm, price_sar, vat_rate, images, files, status,
        version, created_at, updated_at)
    select gen_random_uuid(), id, code, 'Apartment', 142.75, 400000.25, 15, '["https://x.example/1"]', '[]',
        'available', 2, now(), now()
    from project, unnest(array['A-1', 'A-2']) as code;
    insert into unit (id, project_id, code, type, area_sqm, price_sar, images, files, status, hold_expires_at,
        version, created_at, updated_at)
    select gen_random_uuid(), id, 'A-3', 'Apartment', 1, 1, '[]', '[]', 'held', now() - interval '1 hour',
        2, now() - interval '2 hours', now() - interval '2 hours'
    from project;
    insert into event (id, project_id, unit_id, unit_version, type, previous_status, status, created_at)
    select gen_random_uuid(), project_id, id, 2, 'unit.available', 'unavailable', 'available', now() from unit
"""
CONTENTS = """
    select to_jsonb(project) as project, to_jsonb(unit) as unit, to_jsonb(event) as event
    from project join unit on unit.project_id = project.id join event on event.unit_id = unit.id order by code
"""


@pytest.fixture(scope="module", params=[16, 18], ids=["PostgreSQL 16", "PostgreSQL 18"])
def cluster(cluster_of: Callable[[int], Cluster], request: pytest.FixtureRequest) -> Cluster:
    return cluster_of(request.param)


@pytest.fixture
def empty_url(cluster: Cluster) -> Generator[str, None, None]:
    yield from new_database(cluster)


def new_database(cluster: Cluster, options: str = "") -> Generator[str, None, None]:
    name = f"schema_{uuid4().hex}"
    with Sql(with_database(cluster.url, "postgres")) as sql:
        sql.execute(f"create database {name} {options}")
        yield with_database(cluster.url, name)
        sql.execute(f"drop database {name} with (force)")


async def test_an_empty_database_gets_every_revision_and_then_no_more(empty_url: str) -> None:
    assert await schema.migrate(empty_url) == REVISIONS
    assert await schema.migrate(empty_url) == []
    connection = await asyncpg.connect(empty_url)
    assert await schema.current_revision(connection) == schema.HEAD
    await connection.close()


async def test_an_empty_database_is_not_current(empty_url: str) -> None:
    connection = await asyncpg.connect(empty_url)
    assert await schema.current_revision(connection) is None
    await connection.close()


@pytest.mark.parametrize("release", REVISIONS[:-1])
async def test_a_database_in_use_keeps_what_it_holds(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, release: str
) -> None:
    applied = REVISIONS.index(release) + 1
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr(schema, "HEAD", release)
        assert await schema.migrate(empty_url) == REVISIONS[:applied]
    connection = await asyncpg.connect(empty_url)
    await connection.execute(FILLED)
    before = await contents(connection)
    assert await schema.migrate(empty_url) == REVISIONS[applied:]
    after = await contents(connection)
    await connection.close()
    # A later revision may add columns, and leaves alone what is in the others.
    assert [found.items() >= kept.items() for found, kept in zip(after, before, strict=True)] == [True] * 9


def test_the_baseline_makes_the_schema_of_the_revisions_that_it_replaced(
    cluster_of: Callable[[int], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a database of theirs ends with the same schema as a new one."""
    cluster = cluster_of(NEWEST)
    with closing(new_database(cluster)) as one, closing(new_database(cluster)) as another:
        new, before = next(one), next(another)
        with monkeypatch.context() as earlier_release:
            earlier_release.setattr(schema, "HEAD", BASELINE)
            asyncio.run(schema.migrate(new))
        asyncio.run(load_schema_before(before))
        assert statements(reloaded_dump(new, cluster)) == statements(dump(before))
        for url in (new, before):
            assert asyncio.run(schema.migrate(url)) == REVISIONS[1:]
        assert statements(reloaded_dump(new, cluster)) == statements(dump(before))


def dump(url: str) -> str:
    """Return the schema without comments."""
    pg_dump = program_folder(NEWEST) / "bin" / "pg_dump"
    printed = subprocess.run(
        [pg_dump, "--schema-only", "--no-owner", url], capture_output=True, text=True, check=True
    ).stdout
    return re.sub(r"(?m)^(--|\\).*$", "", printed)


def reloaded_dump(url: str, cluster: Cluster) -> str:
    """Return the dump of a database that was made from a dump, in which nested ANDs are flat."""
    with closing(new_database(cluster)) as copies:
        copy = next(copies)
        with Sql(copy) as sql:
            sql.execute(dump(url))
        return dump(copy)


def statements(dumped: str) -> list[str]:
    """Split a dump, without the indentation that functions keep."""
    return [" ".join(statement.split()) for statement in dumped.split(";\n")]


async def load_schema_before(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(SCHEMA_BEFORE)
    await connection.execute("insert into alembic_version values ($1)", BASELINE)
    for table in ("event_feed", "event_sums", "installation"):
        await connection.execute(f"insert into {table} default values")
    await connection.close()


async def contents(connection: asyncpg.Connection) -> list[dict[str, object]]:
    return [json.loads(part) for row in await connection.fetch(CONTENTS) for part in row]


async def test_units_of_an_earlier_release_are_written_and_sold_in_this_one(empty_url: str) -> None:
    await load_schema_before(empty_url)
    connection = await asyncpg.connect(empty_url)
    await connection.execute(FILLED)
    await connection.close()
    assert await schema.migrate(empty_url) == REVISIONS[1:]
    async with Database(empty_url) as database:
        project_id = await Units(database).project_id("palm-court")
        held = HoldUnit((project_id, "A-1"), COMMAND, await new_opening(database))
        changed, opened = await write(database, [replacement(project_id, "A-2", 5), held])
        assert isinstance(changed, WriteResult)
        assert isinstance(opened, WriteResult)
        assert (changed.unit.version, opened.unit.version) == (3, 3)
        assert str(opened.booking.terms.price_sar) == "400000.25"
        # A hold of the earlier release, which no booking made, ends like any other.
        assert await expire_due_holds(database, 10) == 1
        unit, _ = await Units(database).find("palm-court", "A-3")
        assert (unit.status, unit.version) == (Status.AVAILABLE, 3)


async def test_an_installation_has_one_secret_of_its_own(empty_url: str) -> None:
    await schema.migrate(empty_url)
    connection = await asyncpg.connect(empty_url)
    secret = await connection.fetchval("select secret from installation")
    assert len(secret) == 32
    for another in ("insert into installation default values", "insert into installation values (false)"):
        with pytest.raises(asyncpg.IntegrityConstraintViolationError):
            await connection.execute(another)
    await connection.close()


def test_of_many_processes_at_once_one_migrates_and_none_fails(empty_url: str) -> None:
    migrating = [
        subprocess.Popen(
            [HOLDFAST, "migrate", "--json"],
            env=environment({"HOLDFAST_DATABASE_URL": empty_url}),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(MIGRATING_AT_ONCE)
    ]
    answers = [json.loads(process.communicate(timeout=60)[0]) for process in migrating]
    assert sorted(answer["applied"] for answer in answers) == [[]] * (MIGRATING_AT_ONCE - 1) + [REVISIONS]
    assert {answer["revision"] for answer in answers} == {schema.HEAD}


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty_url: str) -> None:
    with Sql(empty_url) as sql:
        sql.execute("create table api_key_project (in_the_way integer)")
        with pytest.raises(SchemaError, match='relation "api_key_project" already exists'):
            sql.run(schema.migrate(empty_url))
        assert sql.value("select count(*) from pg_tables where schemaname = 'public'") == 1


async def test_a_schema_newer_than_the_code_is_refused(empty_url: str) -> None:
    await schema.migrate(empty_url)
    connection = await asyncpg.connect(empty_url)
    await connection.execute("update alembic_version set version_num = '9999'")
    await connection.close()
    with pytest.raises(SchemaError, match=f"has the schema 9999, .* knows it up to {schema.HEAD}"):
        await schema.migrate(empty_url)


async def test_a_schema_older_than_the_baseline_is_refused_with_the_way_out(empty_url: str) -> None:
    await schema.migrate(empty_url)
    connection = await asyncpg.connect(empty_url)
    await connection.execute("update alembic_version set version_num = '0007'")
    await connection.close()
    way_out = f"with the commit {schema.LAST_COMMIT_FOR_OLDER} first"
    with pytest.raises(SchemaError, match=f"has the schema 0007, .* {way_out}"):
        await schema.migrate(empty_url)


async def test_a_server_that_is_too_old_is_refused(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "OLDEST_SERVER", 99)
    with pytest.raises(SchemaError, match=r"needs PostgreSQL 99 or newer; this server is 1[68]"):
        await schema.migrate(empty_url)


def test_a_database_that_is_not_utf8_is_refused(cluster: Cluster) -> None:
    for url in new_database(cluster, "encoding 'LATIN1' template template0"):
        with Sql(url) as sql, pytest.raises(SchemaError, match="encoding UTF8; this one has LATIN1"):
            sql.run(schema.migrate(url))


async def test_the_first_host_that_answers_is_migrated(empty_url: str) -> None:
    database, _, socket_dir = empty_url.partition("?host=")
    assert await schema.migrate(f"{database}?host=/nowhere,{socket_dir}") == REVISIONS
    assert await schema.migrate(empty_url) == []


async def test_a_database_that_is_not_there_is_told_apart_from_one_that_is_away(empty_url: str) -> None:
    with pytest.raises(SchemaError, match='database "no_such" does not exist'):
        await schema.migrate(with_database(empty_url, "no_such"))
    with pytest.raises(DatabaseUnavailable):
        await schema.migrate("postgresql://holdfast@/holdfast?host=/nowhere")


def test_a_start_with_a_current_schema_imports_no_migration_tool(empty_url: str) -> None:
    look = (
        "import asyncio, sys\n"
        "from holdfast.storage.schema import migrate\n"
        f"applied = asyncio.run(migrate({empty_url!r}))\n"
        "print(applied, 'alembic' in sys.modules, 'sqlalchemy' in sys.modules)"
    )
    printed = [
        subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert printed == [f"{REVISIONS} True True\n", "[] False False\n"]
