"""Backups made of one server and restored on another."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage import schema
from holdfast.storage.backup.archive import Manifest, open_backup, write_manifest, writing_backup
from holdfast.storage.backup.dump import COUNTED, COUNTER_GAP, BackupOptions, back_up, restore
from holdfast.storage.errors import BackupError
from holdfast.storage.schema import ADVISORY_LOCK, HEAD
from holdfast.storage.secrets import new_encryption_key
from tests.support.clusters import NEWEST, Cluster
from tests.support.receiver_certificates import authority, certified_for
from tests.support.sql import Sql, with_database
from tests.support.tls_front import TlsFront, tls_front

KEYS = (new_encryption_key(),)
TABLES = "select relname from pg_class where relnamespace = 'public'::regnamespace"
PROJECT = "insert into project (id, slug, name) values (gen_random_uuid(), $1, 'The | البرج')"
UNIT = """
    insert into unit (
        id, project_id, code, type, area_sqm, price_sar, images, files, status, version, created_at,
        updated_at
    )
    select gen_random_uuid(), id, 'A-1', 'flat', 90, 100, '[]', '[]', 'available', 7, now(), now()
    from project
"""
STAFF = """
    insert into staff (id, email, email_key, name, role)
    values (gen_random_uuid(), 'a@b.example', 'a@b.example', 'A', 'admin')
"""
SESSION = """
    insert into staff_session (id, token_hash, staff_id, address, agent)
    select gen_random_uuid(), 'x', id, '', '' from staff
"""

ClusterOf = Callable[[int], Cluster]


@pytest.fixture
def empty_on(cluster_of: ClusterOf) -> Iterator[Callable[[int], str]]:
    """Databases with nothing in them, on the server of a version."""
    made: list[tuple[Cluster, str]] = []

    def make(version: int) -> str:
        cluster, name = cluster_of(version), f"empty_{len(made)}"
        with Sql(with_database(cluster.url, "postgres")) as sql:
            sql.execute(f"create database {name}")
        made.append((cluster, with_database(cluster.url, name)))
        return made[-1][1]

    yield make
    for cluster, url in made:
        cluster.drop_database(url)


@pytest.fixture
def target(empty_on: Callable[[int], str]) -> str:
    return empty_on(NEWEST)


@pytest.fixture(scope="module")
def source(module_postgres_url: str) -> str:
    return filled(module_postgres_url)


@pytest.fixture(scope="module")
def backup_file(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("backups") / "a.backup"
    made(source, file)
    return file


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "another.backup"


def filled(url: str) -> str:
    with Sql(url) as sql:
        sql.execute(PROJECT, "tower")
        for statement in (UNIT, STAFF, SESSION):
            sql.execute(statement)
    return url


def made(url: str, file: Path) -> Manifest:
    return asyncio.run(backing_up(url, file))


async def backing_up(url: str, file: Path) -> Manifest:
    return await back_up(url, BackupOptions(file, True, KEYS, False), lambda _: None)


def restored(url: str, file: Path) -> list[str]:
    return asyncio.run(restoring(url, file))


async def restoring(url: str, file: Path) -> list[str]:
    with open_backup(file) as backup:
        return await restore(url, backup, paused=False, on_bytes=lambda _: None)


def remade(file: Path, dump: bytes, manifest: Manifest) -> None:
    """With checksums that are right, whatever is in it."""
    with writing_backup(file, replace=True) as draft:
        draft.add(dump)
        draft.complete(KEYS[0].encode(), write_manifest(manifest), 0)


def values(url: str, statement: str) -> list[object]:
    with Sql(url) as sql:
        return [next(iter(row.values())) for row in sql.rows(statement)]


@pytest.mark.parametrize(("one", "other"), [(16, 16), (16, 18), (18, 16)])
def test_a_backup_is_restored_on_every_server(
    cluster_of: ClusterOf, file: Path, empty_on: Callable[[int], str], one: int, other: int
) -> None:
    source, target = filled(cluster_of(one).new_database()), empty_on(other)
    manifest = made(source, file)
    assert (manifest.schema, manifest.counts["projects"], manifest.counts["units"]) == (HEAD, 1, 1)
    assert manifest.postgresql.startswith(f"{one}.")
    assert restored(target, file) == []
    assert values(target, "select name from project") == ["The | البرج"]
    assert values(target, "select version_num from alembic_version") == [HEAD]


def test_what_is_counted_goes_on_far_beyond_the_backup(postgres_url: str, file: Path, target: str) -> None:
    with Sql(filled(postgres_url)) as sql:
        sql.execute("select setval('booking_number', 4000000000), setval('unit_ref_number', 100001)")
        sql.execute("update event_feed set last_position = 10")
    made(postgres_url, file)
    restored(target, file)
    assert values(target, "select nextval('booking_number')") == [4_000_000_000 + COUNTER_GAP + 1]
    assert values(target, "select nextval('unit_ref_number')") == [100_001 + COUNTER_GAP + 1]
    assert values(target, "select last_position from event_feed") == [10 + COUNTER_GAP]
    assert values(target, "select version from unit") == [7 + COUNTER_GAP]


def test_nobody_is_signed_in_after_a_restore(backup_file: Path, target: str) -> None:
    restored(target, backup_file)
    assert values(target, "select count(*) from staff") == [1]
    assert values(target, "select count(*) from staff_session") == [0]


def test_a_backup_of_an_older_schema_is_brought_up_to_date(
    empty_on: Callable[[int], str], file: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, *newer = [f"{number:04}" for number in range(12, int(HEAD) + 1)]
    source = empty_on(NEWEST)
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr(schema, "HEAD", older)
        asyncio.run(schema.migrate(source))
    assert made(source, file).schema == older
    assert restored(target, file) == newer
    assert values(target, "select version_num from alembic_version") == [HEAD]


def test_a_restore_that_fails_on_its_way_leaves_nothing(backup_file: Path, file: Path, target: str) -> None:
    """The dump breaks off, and yet its checksum is right."""
    with open_backup(backup_file) as backup:
        dump = b"".join(backup.chunks())
    for part in (dump[: len(dump) // 2], dump[:-100], b"no dump at all"):
        remade(file, part, backup.manifest)
        with pytest.raises(BackupError, match="pg_restore failed"):
            restored(target, file)
        assert values(target, TABLES) == []


def test_a_backup_that_has_not_what_it_says_leaves_nothing(
    backup_file: Path, file: Path, target: str
) -> None:
    with open_backup(backup_file) as backup:
        dump = b"".join(backup.chunks())
    remade(file, dump, backup.manifest._replace(counts=dict.fromkeys(COUNTED, 0)))
    with pytest.raises(BackupError, match="0 rows of project"):
        restored(target, file)
    assert values(target, TABLES) == []


@pytest.mark.parametrize("statement", ["create table t ()", "create domain d as text", "create sequence s"])
def test_a_database_with_anything_in_it_is_not_empty(backup_file: Path, target: str, statement: str) -> None:
    with Sql(target) as sql:
        sql.execute(statement)
    with pytest.raises(BackupError, match="not empty"):
        restored(target, backup_file)


def test_a_database_that_somebody_migrates_is_left_alone(backup_file: Path, target: str) -> None:
    with Sql(target) as other:
        other.execute("select pg_advisory_lock($1)", ADVISORY_LOCK)
        with pytest.raises(BackupError, match="Another process migrates"):
            restored(target, backup_file)


def test_secrets_that_the_keys_do_not_open_are_noticed(source: str, file: Path) -> None:
    with Sql(source) as sql:
        sql.execute("update staff set second_factor_sealed = 'sealed with another key'")
    with pytest.raises(BackupError, match="--even-unreadable"):
        made(source, file)
    assert not file.exists()
    asyncio.run(back_up(source, BackupOptions(file, False, KEYS, True), lambda _: None))
    with Sql(source) as sql:
        sql.execute("update staff set second_factor_sealed = null")
    with open_backup(file) as backup:
        assert backup.keys == KEYS


def test_a_database_without_a_schema_is_nothing_to_back_up(target: str, file: Path) -> None:
    with pytest.raises(BackupError, match="nothing to back up"):
        made(target, file)


@pytest.mark.parametrize("mode", ["", "sslmode=require", "sslmode=verify-full&sslrootcert={authority}"])
def test_a_service_is_reached_by_tls_where_it_has_it(
    source: str, file: Path, target: str, mode: str, tmp_path: Path
) -> None:
    authority().cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    query = mode.format(authority=quote(str(tmp_path / "authority.pem"), safe=""))

    async def there_and_back() -> TlsFront:
        async with tls_front(socket_of(source), certified_for("localhost")) as front:
            await backing_up(by_tcp(source, front.port, query), file)
            await restoring(by_tcp(target, front.port, query), file)
        return front

    front = asyncio.run(there_and_back())
    assert front.encrypted > 4
    assert front.plain == 0
    assert values(target, "select slug from project") == ["tower"]


def test_a_service_without_tls_is_spoken_to_plainly_unless_that_is_forbidden(source: str, file: Path) -> None:
    async def by(query: str) -> TlsFront:
        async with tls_front(socket_of(source), None) as front:
            await backing_up(by_tcp(source, front.port, query), file)
        return front

    for mode in ("", "sslmode=disable"):
        assert asyncio.run(by(mode)).encrypted == 0
    with pytest.raises(DatabaseUnavailable):
        asyncio.run(by("sslmode=require"))


def test_a_password_is_handed_on_unseen(source: str, file: Path) -> None:
    """Trusted as everybody is here, but a password with every odd character must not be in the way."""
    url = source.replace("holdfast@", f"holdfast:{quote('p:@/ %&?é', safe='')}@", 1)
    made(url, file)


def socket_of(url: str) -> str:
    query = parse_qs(urlsplit(url).query)
    return f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"


def by_tcp(url: str, port: int, query: str) -> str:
    name = urlsplit(url).path
    return f"postgresql://holdfast@localhost:{port}{name}" + (f"?{query}" if query else "")
