"""The roles of the database: the owner migrates, the application does the rest, and nobody comes in without a
password."""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from shutil import which
from typing import Any

import asyncpg
import pytest

from holdfast.operations.delivery_queue import drop_old_log_partitions, ensure_log_partitions
from holdfast.storage.database import Database
from holdfast.storage.embedded.cluster import Programs
from holdfast.storage.embedded.files import SOCKET_NAME
from holdfast.storage.embedded.server import EmbeddedPostgres, running_postmaster
from holdfast.storage.errors import EmbeddedPostgresError
from tests.support import commands
from tests.support import server as servers
from tests.support.clusters import Cluster
from tests.support.processes import stop_postgres
from tests.support.sql import Sql, blank_database, with_database

QUICK = {"fsync": "off", "shared_buffers": "16MB"}
NOT_ITS_OWN = """
    select relname from pg_class
    where relkind in ('r', 'p') and relname ~ '^(ended_delivery|attempt)(_|$)'
        and relnamespace = 'public'::regnamespace and relowner <> 'holdfast_app'::regrole
"""
# As the releases before passwords made it.
INITDB = ("initdb", "-D", "postgres", "-U", "holdfast", "--encoding=UTF8", "--auth=trust", "--no-sync")
OLD_SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{folder}/socket'
shared_buffers = '16MB'
fsync = 'off'
"""


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(tmp_path, extra_settings=QUICK)
    yield server
    server.stop()


def connects(url: str, password: str | None = None) -> bool:
    """Whether the server lets this login in; None: with no password at all."""

    async def attempt() -> None:
        connection = await asyncpg.connect(url, password=password or "", passfile=os.devnull)
        await connection.close()

    with suppress(asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError):
        asyncio.run(attempt())
        return True
    return False


def without_password(url: str) -> str:
    scheme, _, rest = url.partition("://")
    login, _, place = rest.partition("@")
    return f"{scheme}://{login.split(':')[0]}@{place}"


def passwords_are_needed(server: EmbeddedPostgres) -> bool:
    return not any(connects(without_password(url)) for url in (server.url, server.owner_url))


async def maintain_log(url: str) -> list[str]:
    """Make the days of the log, and drop them all again."""
    async with Database(url) as database:
        await ensure_log_partitions(database)
        return await drop_old_log_partitions(database, timedelta(days=-30))


def test_the_owner_s_programs_see_no_secrets_and_the_application_runs_none(
    embedded: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_PAYMENT_SECRET", "a secret")
    monkeypatch.setenv("PGAPPNAME", "of another server")
    embedded.start()
    with Sql(embedded.owner_url) as sql:
        sql.execute("create temp table line (text text); copy line from program 'env'")
        names = {row["name"] for row in sql.rows("select split_part(text, '=', 1) as name from line")}
    of_the_shell = {"PWD", "OLDPWD", "SHLVL", "_"}
    # PostgreSQL sets more of both kinds for itself.
    assert {name for name in names - of_the_shell if not name.startswith(("PG", "LC_"))} == {"PATH"}
    assert "PGAPPNAME" not in names
    assert passwords_are_needed(embedded)
    commands.run({"HOLDFAST_DATABASE_URL": embedded.owner_url}, "migrate")
    with Sql(embedded.url) as sql:
        for statement in (
            "copy project (slug) from program 'env'",
            "select pg_read_file('postgresql.conf')",
            "create table mine (id integer)",
            "create temp table mine (id integer)",
            "create function mine() returns integer language sql as 'select 1'",
            "create schema mine",
            "create role mine superuser",
            "alter table unit add column mine integer",
            "update alembic_version set version_num = '0001'",
            "set role holdfast",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                sql.execute(statement)


def test_the_application_makes_and_drops_the_days_of_its_log(postgres_url: str) -> None:
    with Sql(postgres_url) as sql:
        assert sql.rows(NOT_ITS_OWN) == []
    dropped = asyncio.run(maintain_log(postgres_url))
    assert {name[:-9] for name in dropped} == {"ended_delivery", "attempt"}
    asyncio.run(maintain_log(postgres_url))


def make_cluster_of_an_older_release(folder: Path) -> None:
    """It runs, trusts everybody, and one role owns everything."""
    programs = Programs(18, folder)
    programs.prepare_account(folder / "postgres")
    (folder / "socket").mkdir(mode=0o700)
    if programs.account is not None:
        for made in (folder, folder / "socket"):
            os.chown(made, programs.account.uid, programs.account.gid)
    programs.run(*INITDB)
    (folder / "postgres" / "postgresql.conf").write_text("include 'holdfast.conf'\n")
    (folder / "postgres" / "holdfast.conf").write_text(OLD_SETTINGS.format(folder=folder))
    programs.run("pg_ctl", "start", "-D", "postgres", "-w", "-s", "-l", "postgres.log")
    url = f"postgresql://holdfast@/postgres?host={folder}/socket&port=5432"
    with Sql(url) as sql:
        sql.execute("create database holdfast")
    settings = {"HOLDFAST_DATABASE_URL": with_database(url, "holdfast")}
    commands.run(settings, "migrate")
    commands.run(settings, "project", "add", "tower", "--name", "The Tower")
    asyncio.run(make_log(settings["HOLDFAST_DATABASE_URL"]))


async def make_log(url: str) -> None:
    async with Database(url) as database:
        await ensure_log_partitions(database)


@pytest.mark.parametrize("is_running", [True, False], ids=["running", "killed"])
def test_a_cluster_of_an_older_release_gets_passwords_at_the_next_start(
    tmp_path: Path, embedded: EmbeddedPostgres, is_running: bool
) -> None:
    make_cluster_of_an_older_release(tmp_path)
    if not is_running:
        found = running_postmaster(embedded.cluster)
        assert found is not None
        os.kill(found.pid, signal.SIGKILL)
    data = str(tmp_path)
    assert "tower" in commands.run({}, "project", "list", "--data", data)
    embedded.start()
    assert passwords_are_needed(embedded)
    with Sql(embedded.owner_url) as sql:
        assert sql.rows(NOT_ITS_OWN) == []
    assert len(asyncio.run(maintain_log(embedded.url))) > 0


def test_lost_passwords_are_replaced_unless_the_database_is_in_use(
    tmp_path: Path, embedded: EmbeddedPostgres
) -> None:
    """A start that was interrupted before it could write them is no different."""
    embedded.start()
    lost = embedded.owner_url
    (tmp_path / "database-passwords").unlink()
    second = EmbeddedPostgres(tmp_path, extra_settings=QUICK)
    with pytest.raises(EmbeddedPostgresError, match="is in use and must be restarted to get passwords"):
        second.start()
    with Sql(embedded.url) as sql:
        assert sql.value("select 1") == 1
    embedded.stop()
    second.start()
    assert second.owner_url != lost
    assert passwords_are_needed(second)
    second.stop()
    (tmp_path / "database-passwords").write_bytes(b"holdfast:secret\xff")
    with pytest.raises(EmbeddedPostgresError, match="delete the file, and start again") as refused:
        second.start()
    assert "secret" not in str(refused.value)
    (tmp_path / "database-passwords").unlink()


def test_nobody_else_reaches_the_server_while_it_needs_no_passwords(
    tmp_path: Path, embedded: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    run = Programs.run

    def look(self: Programs, program: str, *arguments: str, stdin: str = "") -> Any:
        if program == "psql":
            place = Path(arguments[arguments.index("-h") + 1])
            modes.extend(path.stat().st_mode & 0o777 for path in (place, place / SOCKET_NAME))
        return run(self, program, *arguments, stdin=stdin)

    embedded.start()
    embedded.stop()
    (tmp_path / "database-passwords").unlink()
    monkeypatch.setattr(Programs, "run", look)
    embedded.start()
    assert modes == [0o700, 0o700]


@pytest.mark.skipif(
    os.geteuid() != 0 or which("setpriv") is None, reason="only root has a capability to give up"
)
def test_root_without_ptrace_finds_the_server_that_runs(tmp_path: Path, embedded: EmbeddedPostgres) -> None:
    embedded.start()
    commands.run({"HOLDFAST_DATABASE_URL": embedded.owner_url}, "migrate")
    found = running_postmaster(embedded.cluster)
    without = ("setpriv", "--bounding-set", "-sys_ptrace", "--inh-caps", "-sys_ptrace")
    done = subprocess.run(
        [*without, servers.HOLDFAST, "project", "list", "--data", str(tmp_path)],
        env=servers.environment({}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert running_postmaster(embedded.cluster) == found


def test_recovery_takes_as_long_as_it_takes_and_is_shown_and_can_be_stopped(
    tmp_path: Path, embedded: EmbeddedPostgres
) -> None:
    """It waits for a file; `serve` and a command that comes meanwhile wait for it."""
    embedded.start()
    embedded.stop()
    settings, file = {"HOLDFAST_DATA_DIR": str(tmp_path)}, tmp_path / "the-file"
    with (embedded.cluster / "postgresql.conf").open("a") as conf:
        conf.write(
            f"hot_standby = off\nrestore_command = 'while ! test -e {file}; do sleep 0.05; done; false'\n"
        )
    (embedded.cluster / "recovery.signal").touch()
    try:
        with servers.started(settings, "serve", "--port", "0") as process:
            assert process.stderr is not None
            next(line for line in process.stderr if "waiting for PostgreSQL (starting)" in line)
            with servers.started(settings, "migrate") as command:
                assert command.stderr is not None
                assert "waiting for PostgreSQL (starting)" in command.stderr.readline()
                process.send_signal(signal.SIGINT)
                assert process.wait(servers.PATIENCE_SECONDS) == 0
                # It starts the server again by itself.
                next(line for line in command.stderr if "waiting for PostgreSQL (starting)" in line)
                file.touch()
                _, told = command.communicate(timeout=servers.PATIENCE_SECONDS)
                assert command.returncode == 0, told
    finally:
        file.touch()
        stop_postgres(tmp_path)


def test_a_server_that_ends_while_it_starts_is_an_error_at_once(embedded: EmbeddedPostgres) -> None:
    embedded.start()
    embedded.stop()
    with (embedded.cluster / "postgresql.conf").open("a") as conf:
        conf.write("colour = 'blue'\n")
    for start in (embedded.start, embedded.restart_if_ended):
        with pytest.raises(EmbeddedPostgresError, match=r"did not start; .*colour"):
            start()
    # The supervisor asks several times a second, and not each of them starts it.
    assert not embedded.restart_if_ended()


def test_a_service_can_have_two_roles_too(tmp_path: Path, cluster_of: Callable[[int], Cluster]) -> None:
    """As docs/operations.md says it. The schema has had one role so far, or it is restored from a backup."""
    cluster, file, name = cluster_of(18), str(tmp_path / "backup"), "HOLDFAST_DATABASE_URL"
    with Sql(with_database(cluster.url, "postgres")) as sql:
        sql.execute("create role shop_owner login password 'a'; create role shop login password 'b'")
        sql.execute("grant shop to shop_owner")
    for is_restored in (False, True):
        with blank_database(cluster.url, "owner shop_owner", has_one_role=True) as url:
            with Sql(url) as sql:
                sql.execute("grant usage, create on schema public to shop")
            place = url.partition("@")[2]
            owner = {name: f"postgresql://shop_owner:a@{place}&holdfast.application_role=shop"}
            application = {name: f"postgresql://shop:b@{place}"}
            if is_restored:
                commands.run(owner, "restore", file)
            else:
                commands.run({name: f"postgresql://shop_owner:a@{place}"}, "migrate")
                told = commands.refused(commands.finish({name: owner[name] + "p"}, "migrate"))
                assert told.endswith('refuses to prepare the schema: role "shopp" does not exist.\n')
                commands.run(owner, "migrate")
                commands.run(application, "project", "add", "tower", "--name", "The Tower")
                commands.run(owner, "backup", file)
            assert "tower" in commands.run(application, "project", "list")
            assert len(asyncio.run(maintain_log(application[name]))) > 0
