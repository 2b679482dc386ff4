"""`holdfast backup` and `holdfast restore` when they say no, and when they are cut off."""

import asyncio
import gzip
import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from holdfast.domain.references import encode_reference
from holdfast.operations.delivery_queue import drop_old_log_partitions, ensure_log_partitions
from holdfast.storage.database import Database
from holdfast.storage.embedded.server import running_postmaster, serving_alone, using_embedded
from holdfast.storage.schema import HEAD
from tests.support.buying import Buyer, Hold
from tests.support.client import Project, Unit
from tests.support.clusters import NEWEST, Cluster
from tests.support.commands import finish_process, run, run_for_json, run_refused
from tests.support.installation import installed
from tests.support.server import PATIENCE_SECONDS, WEBHOOKS, started, wait_until
from tests.support.sql import Sql, blank_database, with_database
from tests.support.staff_client import Person

KEY = WEBHOOKS["HOLDFAST_ENCRYPTION_KEYS"]
ANOTHER = "YW5vdGhlciBvbmUsIGZvciB0ZXN0cyBhbG9uZSAhISE="
EMBEDDED = {"HOLDFAST_ENCRYPTION_KEYS": ""}
WAITING = "select exists (select from pg_stat_activity where datname = $1 and wait_event_type = 'Lock')"
AT_WORK = "select exists (select from pg_stat_activity where datname = $1 and application_name = $2)"


@pytest.fixture(scope="module")
def source(module_postgres_url: str) -> dict[str, str]:
    settings = {"HOLDFAST_DATABASE_URL": module_postgres_url}
    run(settings, "project", "add", "tower", "--name", "The Tower")
    run(settings, "endpoint", "add", "http://127.0.0.1:9/hook")
    return settings


@pytest.fixture(scope="module")
def backup(source: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("backups") / "a.backup"
    done = finish_process(source, "backup", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Backed up to {file} (")
    assert "protect it" in done.stdout
    return file


@pytest.fixture
def admin(cluster_of: Callable[[int], Cluster]) -> Iterator[Sql]:
    """A look at the server from beside."""
    with Sql(with_database(cluster_of(NEWEST).url, "postgres")) as sql:
        yield sql


@pytest.fixture
def empty(admin: Sql) -> Iterator[dict[str, str]]:
    name = f"empty_{uuid4().hex}"
    admin.execute(f"create database {name}")
    yield {"HOLDFAST_DATABASE_URL": with_database(admin.url, name)}
    admin.execute(f"drop database {name} with (force)")


def test_a_restore_can_leave_every_endpoint_paused(backup: Path, empty: dict[str, str]) -> None:
    done = finish_process(empty, "restore", str(backup), "--paused")
    assert (done.returncode, done.stderr) == (0, "")
    assert "projects 1, units 0, bookings 0" in done.stdout
    assert "Every endpoint is paused" in done.stdout
    assert "tower" in run(empty, "project", "list")
    (only,) = run_for_json(empty, "endpoint", "list")["endpoints"]
    assert only["state"] == "paused"


def test_a_backup_of_a_release_with_one_role_is_restored_for_two(
    cluster_of: Callable[[int], Cluster], tmp_path: Path
) -> None:
    file, data = str(tmp_path / "a.backup"), tmp_path / "data"
    with blank_database(cluster_of(NEWEST).url, has_one_role=True) as url:
        settings = {"HOLDFAST_DATABASE_URL": url}
        run(settings, "migrate")
        run(settings, "project", "add", "tower", "--name", "The Tower")
        asyncio.run(make_log(url))
        run(settings, "backup", file)
    run(EMBEDDED, "restore", file, "--data", str(data))
    assert "tower" in run(EMBEDDED, "project", "list", "--data", str(data))
    with using_embedded(data) as url:
        assert len(asyncio.run(drop_log(url))) > 0
        asyncio.run(make_log(url))


async def make_log(url: str) -> None:
    async with Database(url) as database:
        await ensure_log_partitions(database)


async def drop_log(url: str) -> list[str]:
    async with Database(url) as database:
        return await drop_old_log_partitions(database, timedelta(days=-30))


def test_a_backup_can_be_looked_into_and_checked(backup: Path) -> None:
    """On no database at all, and no word of the keys unless it is asked for."""
    told = run({}, "restore", str(backup), "--check")
    assert "is complete" in told
    assert KEY not in told
    found = run_for_json({}, "restore", str(backup), "--check")
    assert (found["file"], found["counts"]["projects"]) == (str(backup), 1)
    assert KEY not in json.dumps(found)
    assert run({}, "restore", str(backup), "--show-keys") == f"HOLDFAST_ENCRYPTION_KEYS={KEY}\n"
    assert run_for_json({}, "restore", str(backup), "--show-keys")["encryptionKeys"] == [KEY]


def test_a_file_is_replaced_only_by_force(source: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "a.backup"
    file.write_text("precious")
    assert "--force" in run_refused(source, 1, "backup", str(file))
    assert file.read_text() == "precious"
    run(source, "backup", str(file), "--force")
    assert "is complete" in run({}, "restore", str(file), "--check")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.backup"]


def test_a_backup_needs_the_keys_of_its_secrets(source: dict[str, str], tmp_path: Path) -> None:
    told = run_refused(source | EMBEDDED, 1, "backup", str(tmp_path / "a"))
    assert "HOLDFAST_ENCRYPTION_KEYS is not set" in told


@pytest.fixture(scope="module")
def keyless(source: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made where nobody has the keys."""
    file = tmp_path_factory.mktemp("backups") / "keyless.backup"
    made = run_for_json(source | EMBEDDED, "backup", str(file), "--without-keys")
    assert (made["hasKeys"], made["format"]) == (False, 2)
    return file


def test_a_backup_without_keys_says_so(backup: Path, keyless: Path, source: dict[str, str]) -> None:
    for file, has_keys in ((backup, True), (keyless, False)):
        assert run_for_json({}, "restore", str(file), "--check")["hasKeys"] is has_keys
        assert (KEY.encode() in file.read_bytes()) is has_keys
    assert "without encryption keys" in run({}, "restore", str(keyless), "--check")
    assert "has no encryption keys" in run_refused({}, 1, "restore", str(keyless), "--show-keys")
    told = run(source, "backup", str(keyless), "--without-keys", "--force")
    assert "To restore it you need the encryption keys." in told


@pytest.mark.parametrize("keys", ["", ANOTHER])
def test_a_backup_without_keys_is_restored_only_with_keys_that_open_its_secrets(
    keyless: Path, empty: dict[str, str], tmp_path: Path, keys: str
) -> None:
    if keys:
        (tmp_path / "encryption-keys").write_text(f"{keys}\n")
    for settings in (empty | {"HOLDFAST_ENCRYPTION_KEYS": keys}, EMBEDDED):
        data = () if settings is not EMBEDDED else ("--data", str(tmp_path))
        told = run_refused(settings, 1, "restore", str(keyless), *data)
        assert "yours do not open its secrets: set HOLDFAST_ENCRYPTION_KEYS" in told
        assert told.count("\n") == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["encryption-keys"] * bool(keys)
    with Sql(empty["HOLDFAST_DATABASE_URL"]) as sql:
        assert sql.value("select to_regclass('project')::text") is None
    restored = run_for_json(
        empty | {"HOLDFAST_ENCRYPTION_KEYS": f"{ANOTHER},{KEY}"}, "restore", str(keyless), "--paused"
    )
    assert (restored["counts"]["endpoints"], restored["hasKeys"]) == (1, False)


def test_a_backup_without_keys_is_restored_beside_its_keys(keyless: Path, tmp_path: Path) -> None:
    (tmp_path / "encryption-keys").write_text(f"{KEY}\n")
    run(EMBEDDED, "restore", str(keyless), "--data", str(tmp_path))
    assert (tmp_path / "encryption-keys").read_text() == f"{KEY}\n"
    assert "tower" in run(EMBEDDED, "project", "list", "--data", str(tmp_path))


# Of the release before references were keyed: a unit is sold, another is on sale.
OLDER = Path(__file__).parent / "backup_0016.gz"
OLDER_REFERENCE, OLDER_TOKEN = "Q39-4F6-4K6", "hft_8cM9kzlSyQ9PiLqTyQTAfuQwsaMj_o5e"


def test_a_backup_of_an_older_release_is_restored_with_its_references(
    empty: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "older.backup"
    file.write_bytes(gzip.decompress(OLDER.read_bytes()))
    restored = run_for_json(empty, "restore", str(file))
    assert (restored["schema"], restored["revision"], restored["hasKeys"]) == ("0016", HEAD, True)
    with installed(empty["HOLDFAST_DATABASE_URL"], {}) as office:
        unit = Unit(office.http, Project("", "tower", "The Tower"), "A-102")
        buyer = Buyer(office.http)
        old = Hold(buyer, unit, OLDER_REFERENCE, OLDER_TOKEN)
        assert (old.read()["unitCode"], old.read()["status"]) == ("A-101", "sold")
        assert office.desk.booking("q394f64k6") == old.read()
        link = f"/p/tower/bookings/{OLDER_REFERENCE}/{OLDER_TOKEN}"
        with Person(office.address) as browser:
            page = browser.see(browser.look(link).headers["location"])
        assert OLDER_REFERENCE in page
        new = buyer.hold(unit)
        assert new.read()["status"] == "open"
        number = office.sql.value("select number from booking where reference = $1", new.reference)
        assert new.reference == encode_reference(number, office.sql.value("select secret from installation"))


@pytest.mark.parametrize("keys", ["", ANOTHER])
def test_a_service_must_have_the_keys_first(backup: Path, empty: dict[str, str], keys: str) -> None:
    told = run_refused(empty | {"HOLDFAST_ENCRYPTION_KEYS": keys}, 1, "restore", str(backup))
    assert "HOLDFAST_ENCRYPTION_KEYS must have the keys" in told
    assert "--show-keys" in told
    assert KEY not in told
    assert told.count("\n") == 1


def test_a_database_in_use_is_left_alone(backup: Path, empty: dict[str, str]) -> None:
    """As the processes of `serve` and `work` call themselves."""
    with Sql(empty["HOLDFAST_DATABASE_URL"]) as worker:
        worker.execute("set application_name = 'holdfast background'")
        told = run_refused(empty, 1, "restore", str(backup))
    assert "stop every `serve` and `work` first" in told


def test_a_data_directory_in_use_is_left_alone(backup: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving_alone(data):
        told = run_refused(EMBEDDED, 1, "restore", str(backup), "--data", str(data))
    assert "`holdfast serve` is already running" in told
    with using_embedded(data):
        told = run_refused(EMBEDDED, 1, "restore", str(backup), "--data", str(data))
    assert "Another command is using" in told


def test_other_keys_of_a_data_directory_are_never_replaced(backup: Path, tmp_path: Path) -> None:
    (tmp_path / "encryption-keys").write_text(f"{ANOTHER}\n")
    told = run_refused(EMBEDDED, 1, "restore", str(backup), "--data", str(tmp_path))
    assert "other encryption keys than the backup" in told
    assert (tmp_path / "encryption-keys").read_text() == f"{ANOTHER}\n"
    assert running_postmaster(tmp_path / "postgres") is None


def test_what_is_no_whole_backup_makes_no_database(backup: Path, tmp_path: Path) -> None:
    bad, data = tmp_path / "bad", tmp_path / "data"
    whole = backup.read_bytes()
    for contents in (b"not a backup", whole[:-3000], whole[:5000] + b"x" + whole[5001:]):
        bad.write_bytes(contents)
        told = run_refused(EMBEDDED, 1, "restore", str(bad), "--data", str(data))
        assert told.count("\n") == 1
    assert not data.exists()


@pytest.mark.parametrize(
    "sent", [signal.SIGTERM, signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_backup_that_is_cut_off_leaves_no_backup(
    source: dict[str, str], admin: Sql, tmp_path: Path, sent: signal.Signals
) -> None:
    """Its dump waits for a table that somebody has locked."""
    file = tmp_path / "a.backup"
    with Sql(source["HOLDFAST_DATABASE_URL"]) as other:
        other.execute("begin")
        other.execute("lock table import_part in access exclusive mode")
        with started(source, "backup", str(file)) as process:
            cut_off(process, admin, source, sent)
    assert not file.exists()
    left = list(tmp_path.iterdir())
    assert len(left) == (sent == signal.SIGKILL)
    for draft in left:
        assert "is not a backup" in run_refused({}, 1, "restore", str(draft), "--check")


@pytest.mark.parametrize("sent", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.slow)])
def test_a_restore_that_is_cut_off_leaves_the_database_empty(
    backup: Path, empty: dict[str, str], admin: Sql, sent: signal.Signals
) -> None:
    """All data is there, and then an index waits for the name that somebody else is about to take."""
    with Sql(empty["HOLDFAST_DATABASE_URL"]) as other:
        other.execute("begin")
        other.execute("create sequence booking_of_project")
        with started(empty, "restore", str(backup)) as process:
            cut_off(process, admin, empty, sent)
    wait_until(lambda: not admin.value(AT_WORK, name_of(empty), "holdfast backup"))
    with Sql(empty["HOLDFAST_DATABASE_URL"]) as sql:
        assert sql.value("select to_regclass('project')::text") is None
    assert run_for_json(empty, "restore", str(backup))["counts"]["projects"] == 1


def cut_off(
    process: "subprocess.Popen[str]", admin: Sql, settings: dict[str, str], sent: signal.Signals
) -> None:
    """Once it waits for a lock."""
    wait_until(lambda: admin.value(WAITING, name_of(settings)))
    process.send_signal(sent)
    assert process.wait(PATIENCE_SECONDS) != 0


def name_of(settings: dict[str, str]) -> str:
    return settings["HOLDFAST_DATABASE_URL"].split("?")[0].rsplit("/", 1)[1]
