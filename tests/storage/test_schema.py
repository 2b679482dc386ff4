"""The schema is brought up to date safely, or the database is refused with one sentence."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import asyncpg
import pytest

from holdfast.domain.errors import DatabaseUnavailable, SchemaNotCurrent
from holdfast.domain.status import Status
from holdfast.operations.health import check_ready
from holdfast.operations.holds import expire_due_holds
from holdfast.operations.units import Units
from holdfast.storage import schema
from holdfast.storage.database import Database
from holdfast.storage.embedded.cluster import program_folder
from holdfast.storage.errors import SchemaError, WrongDatabase
from tests.support.clusters import NEWEST, Cluster
from tests.support.inventory import replacement
from tests.support.sales import done, hold
from tests.support.sql import Sql, blank_database, connected, with_database

BASELINE = "0012"
REVISIONS = [BASELINE, "0013", "0014", "0015", "0016", "0017", "0017.1"]
# Made by the revisions that the baseline replaced.
SCHEMA_BEFORE = (Path(__file__).parent / "schema_0012.sql").read_text()
MIGRATING_AT_ONCE = 3

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
PAID = """
    insert into booking (number, reference, project_id, unit_id, token_hash, status, price_sar, created_at,
        signed_at, deposit_confirmed_at, reserved_until, hold_expires_at, payment_id)
    select at, 'AAA-AAA-' || translate(to_char(at, 'FM000'), '0123456789', 'ABCDEFGHJK'), gen_random_uuid(),
        gen_random_uuid(), '', 'reserved', 1, now(), now(), now(), now() + interval '1 day', now(), payment
    from unnest($1::text[]) with ordinality as made (payment, place),
        lateral (select place + (select count(*) from booking) as at) as next
"""
CONTENTS = """
    select to_jsonb(project) as project, to_jsonb(unit) as unit, to_jsonb(event) as event
    from project join unit on unit.project_id = project.id join event on event.unit_id = unit.id order by code
"""


@pytest.fixture
def cluster(cluster_of: Callable[[int], Cluster], postgres_version: int) -> Cluster:
    return cluster_of(postgres_version)


@pytest.fixture
def empty_url(cluster: Cluster) -> Iterator[str]:
    with blank_database(cluster.url) as url:
        yield url


async def test_an_empty_database_gets_every_revision_and_then_no_more(empty_url: str) -> None:
    async with connected(empty_url) as connection, Database(empty_url) as database:
        assert await schema.current_revision(connection) is None
        with pytest.raises(SchemaNotCurrent):
            await check_ready(database)
        assert await schema.migrate(empty_url) == REVISIONS
        await check_ready(database)
        assert await schema.migrate(empty_url) == []
        assert await schema.current_revision(connection) == schema.HEAD
        # An installation has one secret of its own.
        assert len(await connection.fetchval("select secret from installation")) == 32
        for another in ("insert into installation default values", "insert into installation values (false)"):
            with pytest.raises(asyncpg.IntegrityConstraintViolationError):
                await connection.execute(another)


async def test_a_declared_range_of_revisions_is_ready_and_newer_ones_that_only_add(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of its revisions are left as they are; what they add is not needed here."""
    await schema.migrate(empty_url)
    later = f"{int(schema.HEAD.partition('.')[0]) + 1:04}"
    async with connected(empty_url) as connection, Database(empty_url) as database:
        for oldest in (schema.OLDEST_READY, REVISIONS[-2]):
            monkeypatch.setattr(schema, "OLDEST_READY", oldest)
            for revision in (oldest, schema.HEAD, f"{schema.HEAD}.1"):
                await connection.execute("update alembic_version set version_num = $1", revision)
                await check_ready(database)
                await schema.check(empty_url)
                if revision >= schema.HEAD:
                    assert await schema.migrate(empty_url) == []
            for revision in (BASELINE, later, f"{later}.1"):
                await connection.execute("update alembic_version set version_num = $1", revision)
                with pytest.raises(SchemaNotCurrent):
                    await check_ready(database)
                with pytest.raises(WrongDatabase, match=f"has the schema {revision}, "):
                    await schema.check(empty_url)


def test_revisions_are_compared_as_numbers_and_those_of_another_program_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema, "OLDEST_READY", f"{schema.HEAD}.9")
    ready = {
        f"{schema.HEAD}.10": True,
        f"{schema.HEAD}.9": True,
        f"{schema.HEAD}.8": False,
        "1975ea83b712": False,
    }
    assert {revision: schema.is_ready(revision) for revision in ready} == ready


async def test_who_fills_a_database_waits_for_another_longer_than_its_statements_may_take(
    empty_url: str,
) -> None:
    waiting = "select from pg_stat_activity where wait_event = 'advisory' and now() - query_start > '0.1 s'"

    async def fill() -> None:
        async with schema.lock_filling(empty_url):
            pass

    async with connected(empty_url) as look:
        name = await look.fetchval("select current_database()")
        await look.execute(f'alter database "{name}" set statement_timeout = 50')
        async with schema.lock_filling(empty_url):
            second = asyncio.create_task(fill())
            while not (second.done() or await look.fetch(waiting)):
                pass
            assert not second.done()
        await second


async def test_a_database_in_use_keeps_what_it_holds(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(empty_url) as connection:
        before: list[dict[str, object]] = []
        for release in REVISIONS:
            monkeypatch.setattr(schema, "HEAD", release)
            assert await schema.migrate(empty_url) == [release]
            if release == BASELINE:
                await connection.execute(FILLED)
                before = await contents(connection)
            # A later revision may add columns, and leaves alone what is in the others.
            after = await contents(connection)
            assert len(after) == 9
            assert all(found.items() >= kept.items() for found, kept in zip(after, before, strict=True))


HOT_TABLES = ["unit", "booking", "event", "audit_entry", "pending_delivery", "in_flight"]


async def test_tables_that_change_all_day_are_vacuumed_soon(empty_url: str) -> None:
    await schema.migrate(empty_url)
    async with connected(empty_url) as connection:
        options = {
            row["relname"]: dict(option.split("=") for option in row["reloptions"])
            for row in await connection.fetch("select * from pg_class where relname = any($1)", HOT_TABLES)
        }

    def rows_of_a_million(table: str, kind: str) -> float:
        """Return how many may be dead or new before autovacuum takes up the table."""
        scale, fixed = (f"autovacuum_vacuum_{kind}{name}" for name in ("scale_factor", "threshold"))
        return float(options[table][scale]) * 1_000_000 + float(options[table][fixed])

    assert {table: rows_of_a_million(table, "") for table in HOT_TABLES} == {
        **dict.fromkeys(HOT_TABLES, 22_000),
        "in_flight": 5_000,
    }
    assert rows_of_a_million("audit_entry", "insert_") == 30_000
    for queue in ("pending_delivery", "in_flight"):
        assert options[queue]["autovacuum_vacuum_cost_delay"] == "0"


async def test_payments_that_confirmed_several_bookings_are_named_and_the_schema_stays(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(empty_url) as connection:
        with monkeypatch.context() as earlier_release:
            earlier_release.setattr(schema, "HEAD", "0015")
            await schema.migrate(empty_url)
        for payments, end in (
            (["pay_7", "pay_7", "pay_8"], "booking: pay_7 (AAA-AAA-AAB and AAA-AAA-AAC)."),
            ([*"abcdefghijk"] * 2, ", and 2 more."),
        ):
            await connection.execute(PAID, payments)
            with pytest.raises(SchemaError, match="up to date: these payments are recorded on") as refused:
                await schema.migrate(empty_url)
            assert str(refused.value).endswith(end)
            assert await schema.current_revision(connection) == "0015"
        await connection.execute("update booking set payment_id = null where payment_id <> 'pay_8'")
        assert await schema.migrate(empty_url) == REVISIONS[4:]


def test_the_baseline_makes_the_schema_of_the_revisions_that_it_replaced(
    cluster_of: Callable[[int], Cluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a database of theirs ends with the same schema as a new one."""
    cluster = cluster_of(NEWEST)
    with (
        blank_database(cluster.url, has_one_role=True) as new,
        blank_database(cluster.url, has_one_role=True) as before,
    ):
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
    with blank_database(cluster.url) as copy, Sql(copy) as sql:
        sql.execute(dump(url))
        return dump(copy)


def statements(dumped: str) -> list[str]:
    """Split a dump, without the indentation that functions keep."""
    return [" ".join(statement.split()) for statement in dumped.split(";\n")]


async def load_schema_before(url: str) -> None:
    async with connected(url) as connection:
        await connection.execute(SCHEMA_BEFORE)
        await connection.execute("insert into alembic_version values ($1)", BASELINE)
        for table in ("event_feed", "event_sums", "installation"):
            await connection.execute(f"insert into {table} default values")


async def contents(connection: asyncpg.Connection) -> list[dict[str, object]]:
    return [json.loads(part) for row in await connection.fetch(CONTENTS) for part in row]


async def test_units_of_an_earlier_release_are_written_and_sold_in_this_one(empty_url: str) -> None:
    await load_schema_before(empty_url)
    async with connected(empty_url) as connection:
        await connection.execute(FILLED)
    assert await schema.migrate(empty_url) == REVISIONS[1:]
    async with Database(empty_url) as database:
        project_id = await Units(database).project_id("palm-court")
        opened = await hold(database, (project_id, "A-1"))
        changed = await done(database, replacement(project_id, "A-2", 5))
        assert (changed.unit.version, str(opened.terms.price_sar)) == (3, "400000.25")
        # A hold of the earlier release, which no booking made, ends like any other.
        assert await expire_due_holds(database, 10) == 1
        unit, _ = await Units(database).find("palm-court", "A-3")
        assert (unit.status, unit.version) == (Status.AVAILABLE, 3)


@pytest.mark.parametrize(
    ("slugs", "is_filled"), [(["narjis-heights"], True), (["narjis-heights", "own"], False), (["own"], False)]
)
async def test_a_database_of_an_earlier_release_counts_as_filled_if_the_demo_s_project_is_its_only_one(
    empty_url: str, slugs: list[str], is_filled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its schema is migrated only if the demo may use it."""
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr(schema, "HEAD", "0015")
        await schema.migrate(empty_url)
    async with connected(empty_url) as connection:
        for slug in slugs:
            await connection.execute(
                "insert into project (id, slug, name) values (gen_random_uuid(), $1, 'Some')", slug
            )
        with nullcontext() if is_filled else pytest.raises(WrongDatabase, match="was not filled by the demo"):
            await schema.migrate(empty_url, "narjis-heights")
        assert await schema.current_revision(connection) == (schema.HEAD if is_filled else "0015")
        await schema.migrate(empty_url)
        assert await connection.fetchval("select filled_by_demo from installation") is is_filled


def migrating(url: str) -> subprocess.Popen[str]:
    """A process that tells what it applied, and whether it has loaded the tools for that."""
    program = (
        "import asyncio, sys\n"
        "from holdfast.storage.schema import migrate\n"
        f"applied = asyncio.run(migrate({url!r}))\n"
        "print(applied, 'alembic' in sys.modules, 'sqlalchemy' in sys.modules)"
    )
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def test_of_many_processes_at_once_one_migrates_and_none_fails(empty_url: str) -> None:
    processes = [migrating(empty_url) for _ in range(MIGRATING_AT_ONCE)]
    applied = sorted(process.communicate(timeout=300)[0].partition("]")[0] for process in processes)
    assert applied == ["["] * (MIGRATING_AT_ONCE - 1) + [str(REVISIONS).removesuffix("]")]
    assert migrating(empty_url).communicate(timeout=300)[0] == "[] False False\n"


def test_a_migration_that_fails_leaves_the_database_as_it_was(empty_url: str) -> None:
    with Sql(empty_url) as sql:
        sql.execute("create table api_key_project (in_the_way integer)")
        with pytest.raises(SchemaError, match='relation "api_key_project" already exists'):
            sql.run(schema.migrate(empty_url))
        assert sql.value("select count(*) from pg_tables where schemaname = 'public'") == 1


async def test_a_schema_that_this_release_does_not_know_is_refused_with_the_way_out(empty_url: str) -> None:
    await schema.migrate(empty_url)
    way_out = f"with the commit {schema.LAST_COMMIT_FOR_OLDER} first"
    for version, reason in (("9999", f"works with {BASELINE} to {schema.HEAD}"), ("0007", way_out)):
        async with connected(empty_url) as connection:
            await connection.execute(f"update alembic_version set version_num = '{version}'")
        with pytest.raises(SchemaError, match=f"has the schema {version}, .* {reason}"):
            await schema.migrate(empty_url)


def test_an_old_server_or_encoding_is_refused(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    with blank_database(cluster.url, "encoding 'LATIN1' template template0") as url:
        with pytest.raises(SchemaError, match="encoding UTF8; this one has LATIN1"):
            asyncio.run(schema.migrate(url))
        monkeypatch.setattr(schema, "OLDEST_SERVER", 99)
        with pytest.raises(SchemaError, match=r"needs PostgreSQL 99 or newer; .* is 1[68]"):
            asyncio.run(schema.migrate(url))


async def test_the_first_host_that_answers_is_migrated(empty_url: str) -> None:
    database, _, socket_dir = empty_url.partition("?host=")
    assert await schema.migrate(f"{database}?host=/nowhere,{socket_dir}") == REVISIONS
    assert await schema.migrate(empty_url) == []


async def test_a_database_that_is_not_there_is_told_apart_from_one_that_is_away(empty_url: str) -> None:
    with pytest.raises(SchemaError, match='database "no_such" does not exist'):
        await schema.migrate(with_database(empty_url, "no_such"))
    with pytest.raises(SchemaError, match="HOLDFAST_DATABASE_URL cannot be used"):
        await schema.migrate(f"{empty_url}&sslmode=verfy-full")
    with pytest.raises(DatabaseUnavailable):
        await schema.migrate("postgresql://holdfast@/holdfast?host=/nowhere")
