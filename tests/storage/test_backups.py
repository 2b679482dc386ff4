"""Backups: a file that is whole or none, made of one server and restored on another."""

import asyncio
import os
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from holdfast.domain.errors import DatabaseUnavailable
from holdfast.storage import schema
from holdfast.storage.backup import archive
from holdfast.storage.backup.archive import Manifest, open_backup, write_manifest, writing_backup
from holdfast.storage.backup.dump import COUNTED, BackupOptions, back_up, restore
from holdfast.storage.bookings import next_references
from holdfast.storage.database import Database
from holdfast.storage.errors import BackupError, WrongDatabase
from holdfast.storage.recovery import COUNTER_GAP
from holdfast.storage.schema import ADVISORY_LOCK, HEAD, LAST_COMMIT_FOR_OLDER
from holdfast.storage.secrets import new_encryption_key
from tests.support.clusters import NEWEST, Cluster
from tests.support.receiver_certificates import authority, certified_for
from tests.support.sql import Sql, blank_database, execute
from tests.support.tls_front import TlsFront, tls_front

KEYS = (new_encryption_key(), new_encryption_key())
MOMENT = datetime(2026, 11, 14, 9, 30, tzinfo=UTC)
DUMP = os.urandom(3000)
MANIFEST = Manifest("0.1.0", MOMENT, HEAD, "18.4", {"units": 3})


def manifest(schema: str = HEAD) -> bytes:
    return write_manifest(MANIFEST._replace(schema=schema))


def fill(file: archive.UnfinishedBackup, about: bytes, dump: bytes = DUMP) -> None:
    file.add(dump[:1000])
    file.add(dump[1000:])
    file.complete("".join(f"{key}\n" for key in KEYS).encode(), about, MOMENT.timestamp())


def write(path: Path, about: bytes, dump: bytes = DUMP, *, replace: bool = False) -> None:
    """With checksums that are right, whatever is in it."""
    with writing_backup(path, replace=replace) as file:
        fill(file, about, dump)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write(tmp_path / "made.backup", manifest())
    return tmp_path / "made.backup"


def refusal(path: Path) -> str:
    with pytest.raises(BackupError) as refused, open_backup(path):
        pass
    return str(refused.value)


def test_what_was_written_is_read_here_and_without_holdfast(path: Path, tmp_path: Path) -> None:
    with open_backup(path) as backup:
        assert b"".join(backup.chunks()) == DUMP
    assert (backup.keys, backup.dump_bytes, backup.manifest) == (KEYS, len(DUMP), MANIFEST)
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "holdfast-backup"
    subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder, check=True)
    assert (folder / "database.dump").read_bytes() == DUMP


def test_a_file_that_breaks_off_or_has_a_changed_byte_is_refused(path: Path) -> None:
    """But in the padding, where nothing stands, and in what headers say of times and owners."""
    whole = path.read_bytes()
    broken = [whole[:kept] for kept in (512, 513, 2000, 3500, 4096, 5000, -1025)]
    with tarfile.open(path) as archive:
        parts = [(part.offset_data, part.size) for part in archive]
    assert len(parts) == 4
    places = [at for start, size in parts for at in (start, start + size // 2, start + size - 1)]
    broken += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in places]
    for content in broken:
        path.write_bytes(content)
        assert "damaged or incomplete" in refusal(path)


def test_another_file_is_no_backup(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.tar"
    with tarfile.open(other, "w") as archive:
        archive.add(path, "some/file")
    for content in (b"", b"x", b"PGDMP" + bytes(2000), bytes(4096), other.read_bytes()):
        other.write_bytes(content)
        assert "is not a backup made by `holdfast backup`" in refusal(other)
    assert "No such file" in refusal(tmp_path / "nothing")
    assert "Is a directory" in refusal(tmp_path)


def test_what_another_release_made_is_refused(path: Path) -> None:
    for about, told in (
        (manifest(schema="9999"), "use the release that made it, or a newer"),
        (manifest(schema="0011"), f"with the commit {LAST_COMMIT_FOR_OLDER} first"),
        (manifest().replace(b'"format": 1', b'"format": 3'), "in a newer format"),
        (b"{}", "manifest of the backup cannot be read"),
    ):
        write(path, about, replace=True)
        assert told in refusal(path)


def test_a_file_that_comes_meanwhile_is_not_replaced_either(tmp_path: Path) -> None:
    target = tmp_path / "made"

    def write_while_it_comes() -> None:
        with writing_backup(target, replace=False) as file:
            fill(file, manifest())
            target.write_text("somebody else's")

    with pytest.raises(BackupError, match="--force"):
        write_while_it_comes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["made"]
    assert target.read_text() == "somebody else's"


def test_a_file_is_replaced_only_if_that_is_asked_for_and_when_the_new_one_is_whole(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(BackupError, match="--force"):
        write(path, manifest())

    def begin() -> None:
        with writing_backup(path, replace=True) as file:
            file.add(b"some of it")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        begin()
    assert path.read_bytes() == before
    write(path, manifest(), b"another one", replace=True)
    with open_backup(path) as backup:
        assert b"".join(backup.chunks()) == b"another one"
    assert len(list(path.parent.iterdir())) == 1


def test_a_place_where_no_file_can_be_is_refused(tmp_path: Path) -> None:
    for place, told in ((tmp_path, "is a directory"), (tmp_path / "no" / "file", "no directory")):
        with pytest.raises(BackupError, match=told):
            write(place, manifest(), replace=True)


def test_what_is_not_complete_looks_like_no_backup(tmp_path: Path) -> None:
    """As a crash leaves it."""
    with writing_backup(tmp_path / "made", replace=False) as file:
        file.add(DUMP)
        file._file.flush()
        (draft,) = tmp_path.iterdir()
        assert draft.name.endswith(".unfinished")
        assert "is not a backup" in refusal(draft)
        fill(file, manifest(), dump=b"")


# Made of one server, and restored on another

TABLES = "select relname from pg_class where relnamespace = 'public'::regnamespace"
FILLED = """
    insert into project (id, slug, name) values (gen_random_uuid(), 'tower', 'The | البرج');
    insert into unit (id, project_id, code, type, area_sqm, price_sar, images, files, status, version,
        created_at, updated_at)
    select gen_random_uuid(), id, 'A-1', 'x', 90, 100, '[]', '[]', 'available', 7, now(), now() from project;
    insert into staff (id, email, email_key, name, role)
    values (gen_random_uuid(), 'a@b.example', 'a@b.example', 'A', 'admin');
    insert into staff_session (id, token_hash, staff_id, address, agent)
    select gen_random_uuid(), 'x', id, '', '' from staff
"""
ClusterOf = Callable[[int], Cluster]


@pytest.fixture
def empty_on(cluster_of: ClusterOf) -> Iterator[Callable[[int], str]]:
    """Databases with nothing in them, on the server of a version."""
    with ExitStack() as stack:
        yield lambda version: stack.enter_context(blank_database(cluster_of(version).url))


@pytest.fixture
def target(empty_on: Callable[[int], str]) -> str:
    return empty_on(NEWEST)


@pytest.fixture(scope="module")
def source(module_postgres_url: str) -> str:
    return filled(module_postgres_url)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "another.backup"


def filled(url: str) -> str:
    with Sql(url) as sql:
        sql.execute(FILLED)
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


def values(url: str, statement: str) -> list[object]:
    with Sql(url) as sql:
        return [next(iter(row.values())) for row in sql.rows(statement)]


@pytest.mark.slow
@pytest.mark.parametrize(("one", "other"), [(16, 16), (16, 18), (18, 16)])
def test_a_backup_is_restored_on_every_server(
    cluster_of: ClusterOf, file: Path, empty_on: Callable[[int], str], one: int, other: int
) -> None:
    source, target = filled(cluster_of(one).new_database()), empty_on(other)
    assert made(source, file).postgresql.startswith(f"{one}.")
    assert restored(target, file) == []
    assert values(target, "select name from project") == ["The | البرج"]


def test_a_restored_database_counts_on_far_beyond(postgres_url: str, file: Path, target: str) -> None:
    with Sql(filled(postgres_url)) as sql:
        sql.execute("select setval('booking_number', 4000000000), setval('unit_ref_number', 100001)")
        sql.execute("update event_feed set last_position = 10")
    manifest = made(postgres_url, file)
    assert (manifest.schema, manifest.counts["projects"], manifest.counts["units"]) == (HEAD, 1, 1)
    assert restored(target, file) == []
    for statement, expected in {
        "select name from project": "The | البرج",
        "select version_num from alembic_version": HEAD,
        "select count(*) from staff": 1,
        "select count(*) from staff_session": 0,
        # The nearer their end, the fewer numbers are given up.
        f"select nextval('booking_number') - (4 * 10 ^ 9 + {COUNTER_GAP}) between 1 and 294967295 / 40": True,
        "select last_position > 10 + 10 ^ 9 from event_feed": True,
        "select version > 7 + 10 ^ 9 from unit": True,
    }.items():
        assert values(target, statement) == [expected]


async def first_reference(url: str) -> str:
    async with Database(url) as database:
        await execute(database, "select setval('booking_number', 1, false)")
        ((_, reference),) = await database.read(next_references, 1)
        return reference


def test_a_restored_installation_makes_its_own_references_and_another_one_others(
    postgres_url: str, file: Path, empty_on: Callable[[int], str]
) -> None:
    copy, other = empty_on(NEWEST), empty_on(NEWEST)
    made(postgres_url, file)
    restored(copy, file)
    asyncio.run(schema.migrate(other))
    own, copied, others = [asyncio.run(first_reference(url)) for url in (postgres_url, copy, other)]
    assert copied == own != others


def test_a_backup_of_an_older_schema_is_brought_up_to_date(
    empty_on: Callable[[int], str], file: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    older, *newer = schema._REVISIONS
    source = empty_on(NEWEST)
    with monkeypatch.context() as earlier_release:
        earlier_release.setattr(schema, "HEAD", older)
        asyncio.run(schema.migrate(source))
    assert made(source, file).schema == older
    assert restored(target, file) == newer
    assert values(target, "select version_num from alembic_version") == [HEAD]


def test_a_restore_that_fails_on_its_way_leaves_nothing(source: str, file: Path, target: str) -> None:
    """The dump breaks off or has not what it says, and yet its checksum is right."""
    made(source, file)
    with open_backup(file) as backup:
        dump = b"".join(backup.chunks())
    without = backup.manifest._replace(counts=dict.fromkeys(COUNTED, 0))
    for part, about, reason in (
        (dump[: len(dump) // 2], backup.manifest, "pg_restore failed"),
        (b"no dump at all", backup.manifest, "pg_restore failed"),
        (dump, without, "0 rows of project"),
    ):
        write(file, write_manifest(about), part, replace=True)
        with pytest.raises(BackupError, match=reason):
            restored(target, file)
        assert values(target, TABLES) == []


def test_a_database_that_is_not_empty_is_left_alone(source: str, file: Path, target: str) -> None:
    made(source, file)
    with Sql(target) as other:
        for kind, name in (("table", "t ()"), ("domain", "t as text"), ("sequence", "t")):
            other.execute(f"create {kind} {name}")
            with pytest.raises(BackupError, match="not empty"):
                restored(target, file)
            other.execute(f"drop {kind} t")
        other.execute("select pg_advisory_lock($1)", ADVISORY_LOCK)
        with pytest.raises(BackupError, match="Another process migrates"):
            restored(target, file)


def test_secrets_that_the_keys_do_not_open_are_noticed(source: str, target: str, file: Path) -> None:
    with pytest.raises(WrongDatabase, match="nothing to back up"):
        made(target, file)
    with Sql(source) as sql:
        sql.execute("update staff set second_factor_sealed = 'sealed with another key'")
    with pytest.raises(BackupError, match="--even-unreadable"):
        made(source, file)
    assert not file.exists()
    with Sql(source) as sql:
        sql.execute("create role odd superuser login password 'p:@/ %&?é'")
        url = source.replace(urlsplit(source).netloc, f"odd:{quote('p:@/ %&?é', safe='')}@", 1)
        asyncio.run(back_up(url, BackupOptions(file, True, KEYS, True), lambda _: None))
        sql.execute("update staff set second_factor_sealed = null")
        sql.execute("drop role odd")
    with open_backup(file) as backup:
        assert backup.keys == KEYS


def test_tls_is_used_where_there_is_any(source: str, file: Path, target: str, tmp_path: Path) -> None:
    authority().cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    certificate = quote(str(tmp_path / "authority.pem"), safe="")

    async def there_and_back() -> tuple[TlsFront, TlsFront]:
        certified = certified_for("localhost")
        async with (
            tls_front(socket_of(source), certified) as one,
            tls_front(socket_of(target), certified) as other,
        ):
            for query in ("", "sslmode=require", f"sslmode=verify-full&sslrootcert={certificate}"):
                await backing_up(by_tcp(source, one.port, query), file)
            await restoring(by_tcp(target, other.port, query), file)
        return one, other

    one, other = asyncio.run(there_and_back())
    assert (one.encrypted > 4, other.encrypted > 1, one.plain, other.plain) == (True, True, 0, 0)
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


def socket_of(url: str) -> str:
    query = parse_qs(urlsplit(url).query)
    return f"{query['host'][0]}/.s.PGSQL.{query['port'][0]}"


def by_tcp(url: str, port: int, query: str) -> str:
    login, name = urlsplit(url).netloc, urlsplit(url).path
    return f"postgresql://{login}localhost:{port}{name}" + (f"?{query}" if query else "")
