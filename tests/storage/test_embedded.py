"""The embedded PostgreSQL: made, adopted, shared and stopped, with real servers."""

import fcntl
import os
import pwd
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from holdfast.storage.embedded import server as module
from holdfast.storage.embedded.files import make_socket_folder, open_descriptor, socket_folder, system_user
from holdfast.storage.embedded.server import EmbeddedPostgres, running_postmaster, using_embedded
from holdfast.storage.errors import EmbeddedPostgresError
from tests.support.sql import Sql

QUICK = {"fsync": "off", "shared_buffers": "16MB"}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the server a user of its own")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[EmbeddedPostgres]]:
    """Whatever a test puts in here, or starts in its folder, is stopped after it."""
    made: list[EmbeddedPostgres] = []
    yield made
    for server in (*made, EmbeddedPostgres(tmp_path)):
        if server.data_dir.exists():
            server.stop()


@pytest.fixture
def embedded(tmp_path: Path, servers: list[EmbeddedPostgres]) -> EmbeddedPostgres:
    return EmbeddedPostgres(tmp_path, extra_settings=QUICK)


def postmaster_of(server: EmbeddedPostgres) -> psutil.Process:
    found = running_postmaster(server.cluster)
    assert found is not None
    return psutil.Process(found.pid)


def kill_everything(server: EmbeddedPostgres) -> None:
    """As a power failure would, save for the disk."""
    postmaster = postmaster_of(server)
    family = [postmaster, *postmaster.children(recursive=True)]
    for process in family:
        with suppress(psutil.NoSuchProcess):  # It may have gone with its parent.
            process.kill()
    psutil.wait_procs(family, timeout=60)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def is_running(server: EmbeddedPostgres) -> bool:
    return running_postmaster(server.cluster) is not None


def answer(url: str, statement: str = "select number from kept") -> object:
    with Sql(url) as sql:
        return sql.value(statement)


@pytest.mark.parametrize("version", [pytest.param(16, marks=pytest.mark.slow), 18])
def test_a_new_cluster_is_private_checked_utf8_and_durable_and_keeps_what_was_stored(
    tmp_path: Path, servers: list[EmbeddedPostgres], version: int
) -> None:
    server, second = [EmbeddedPostgres(tmp_path, version=version) for _ in range(2)]
    servers.append(server)
    url = server.start()
    assert not server.adopted
    with Sql(server.owner_url) as sql:
        assert sql.value("show server_version_num")[:2] == str(version)
        assert sql.value("show server_encoding") == "UTF8"
        assert sql.value("show listen_addresses") == ""
        for setting in ("data_checksums", "synchronous_commit", "fsync", "full_page_writes"):
            assert sql.value(f"show {setting}") == "on"
        assert sql.value("select current_user || '/' || current_database()") == "holdfast/holdfast"
        sql.execute("create table kept as select 42 as number")
    assert mode_of(tmp_path / "postgres") == 0o700
    # Root's server has a user of its own, and other users of the machine need its passwords.
    folder = socket_folder(tmp_path)
    modes = (mode_of(folder), mode_of(folder / ".s.PGSQL.5432"))
    assert modes == ((0o711, 0o777) if os.geteuid() == 0 else (0o700, 0o700))
    assert mode_of(tmp_path / "database-passwords") == 0o600
    assert mode_of(tmp_path / "postgres.log") == 0o600
    assert (second.start(), second.adopted) == (url, True)
    second.leave()
    assert is_running(server)
    server.stop()
    assert not is_running(server)

    server.start()
    assert answer(server.owner_url) == 42


def test_an_unfinished_cluster_is_made_again_and_holds_none_of_our_locks(embedded: EmbeddedPostgres) -> None:
    unfinished = embedded.data_dir / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    embedded.start()
    assert not unfinished.exists()
    postmaster = postmaster_of(embedded)
    opened = postmaster.open_files()
    for child in postmaster.children():
        with suppress(psutil.NoSuchProcess):  # It may end while we look.
            opened += child.open_files()
    assert not [file for file in opened if file.path.endswith(".lock")]


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("letter.txt", "is not a PostgreSQL cluster"),
        ("PG_VERSION", r"made by PostgreSQL 16, but this release .* PostgreSQL 18"),
    ],
)
def test_a_foreign_folder_is_left_alone(embedded: EmbeddedPostgres, file: str, reason: str) -> None:
    embedded.cluster.mkdir()
    (embedded.cluster / file).write_text("16\n")
    with pytest.raises(EmbeddedPostgresError, match=reason):
        embedded.start()
    assert (embedded.cluster / file).read_text() == "16\n"


def test_a_server_that_was_killed_is_started_again_and_has_lost_nothing(embedded: EmbeddedPostgres) -> None:
    embedded.start()
    with Sql(embedded.owner_url) as sql:
        sql.execute("create table kept as select 42 as number")
    assert not embedded.restart_if_ended()
    kill_everything(embedded)
    assert embedded.restart_if_ended()
    assert answer(embedded.owner_url) == 42
    kill_everything(embedded)
    second = EmbeddedPostgres(embedded.data_dir, extra_settings=QUICK)
    second.start()
    assert answer(second.owner_url) == 42
    assert not second.adopted
    # Its children linger.
    postmaster = postmaster_of(second)
    postmaster.kill()
    psutil.wait_procs([postmaster], timeout=60)
    second.start()
    assert answer(second.owner_url) == 42
    # A file names the process of somebody else.
    pid_file = embedded.cluster / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    second.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    folder = socket_folder(embedded.data_dir)
    folder.mkdir(mode=0o700, exist_ok=True)
    (folder / ".s.PGSQL.5432.lock").write_text("\n".join([str(os.getpid()), *lines[1:5]]))
    assert not is_running(embedded)
    embedded.start()
    assert not embedded.adopted


def test_only_a_long_wait_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    found = [module.Postmaster(1, 0, "", "")] * 8
    monkeypatch.setattr(module, "running_postmaster", lambda _: found.pop() if found else None)
    server = EmbeddedPostgres(tmp_path)
    server._wait_until_ready()
    assert caplog.messages == []
    found += [module.Postmaster(1, 0, "", "")] * 8
    server._next_progress_at -= module._PROGRESS_SECONDS
    server._wait_until_ready()
    assert caplog.messages == ["waiting for PostgreSQL (starting): no log"]


def test_a_server_whose_process_is_hidden_is_known_by_its_socket(
    embedded: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that shares the data directory, or with the processes of others hidden."""

    def hide(pid: int) -> None:
        raise psutil.NoSuchProcess(pid)

    embedded.start()
    found = running_postmaster(embedded.cluster)
    with monkeypatch.context() as patched:
        patched.setattr(psutil, "Process", hide)
        assert running_postmaster(embedded.cluster) == found
    pid_file = (embedded.cluster / "postmaster.pid").read_text()
    kill_everything(embedded)
    monkeypatch.setattr(psutil, "Process", hide)
    assert (embedded.cluster / "postmaster.pid").read_text() == pid_file
    assert running_postmaster(embedded.cluster) is None


def test_a_server_that_does_not_stop_is_not_taken_for_stopped(
    embedded: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedded.start()
    postmaster = postmaster_of(embedded)
    monkeypatch.setattr(module, "STOP_LIMIT_SECONDS", 1)
    postmaster.suspend()
    try:
        with pytest.raises(EmbeddedPostgresError, match="does not stop"):
            embedded.stop()
    finally:
        postmaster.resume()
    psutil.wait_procs([postmaster], timeout=60)


@needs_root
def test_a_cluster_that_this_user_may_not_look_into_is_one_sentence() -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        (Path(folder) / "postgres").mkdir(mode=0o700)
        os.seteuid(12345)
        try:
            with pytest.raises(EmbeddedPostgresError, match="cannot be read; run Holdfast as its owner"):
                EmbeddedPostgres(Path(folder)).start()
        finally:
            os.seteuid(0)


def test_a_command_stops_the_server_that_it_started_unless_somebody_uses_it(
    embedded: EmbeddedPostgres,
) -> None:
    with using_embedded(embedded.data_dir):
        assert is_running(embedded)
    assert not is_running(embedded)
    with ExitStack() as second_command:
        with using_embedded(embedded.data_dir):
            url = second_command.enter_context(using_embedded(embedded.data_dir))
        assert answer(url, "select 1") == 1
    embedded.start()
    with using_embedded(embedded.data_dir):
        pass
    assert is_running(embedded)


def test_serve_stops_any_server_but_waits_for_a_command(embedded: EmbeddedPostgres) -> None:
    embedded.start()
    second_user = EmbeddedPostgres(embedded.data_dir)
    second_user.start()
    embedded.leave()
    second_user.leave()
    with module.serving_embedded(embedded.data_dir, connections=100) as served:
        assert served.adopted
    assert not is_running(embedded)
    embedded.start()
    command = EmbeddedPostgres(embedded.data_dir)
    command.start()
    stopping = threading.Thread(target=embedded.stop, args=(600.0,))
    stopping.start()
    assert answer(command.url, "select 1") == 1
    assert stopping.is_alive()
    command.leave()
    stopping.join(60.0)
    assert not stopping.is_alive()
    assert not is_running(embedded)


def test_a_second_serve_on_the_same_data_directory_is_refused(tmp_path: Path) -> None:
    second = module.serving_alone(tmp_path)
    with module.serving_alone(tmp_path), pytest.raises(EmbeddedPostgresError, match="already running on"):
        second.__enter__()
    with module.serving_alone(tmp_path):
        pass


def test_a_data_directory_may_have_any_name(tmp_path: Path, servers: list[EmbeddedPostgres]) -> None:
    folder = tmp_path / ('a space, quo"ted, $HOME, بيانات ' + "d" * 90)
    server = EmbeddedPostgres(folder, extra_settings=QUICK)
    servers.append(server)
    assert answer(server.start(), "select 1") == 1
    assert len(os.fsencode(socket_folder(folder))) <= 90
    assert socket_folder(folder).exists()
    server.stop()
    assert not socket_folder(folder).exists()


def test_a_socket_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "socket").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EmbeddedPostgresError, match="cannot be used"):
        make_socket_folder(tmp_path / "socket", None)


@needs_root
def test_a_socket_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "socket"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(EmbeddedPostgresError, match="belongs to another user"):
        make_socket_folder(folder, None)


@needs_root
def test_root_lends_the_server_a_user(tmp_path: Path, servers: list[EmbeddedPostgres]) -> None:
    """And opens folders for passing only."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "data", extra_settings=QUICK)
    servers.append(server)
    server.start()
    user = postmaster_of(server).uids().effective
    assert user != 0
    assert (mode_of(closed), mode_of(server.data_dir)) == (0o701, 0o701)
    assert server.cluster.stat().st_uid == user
    server.stop()
    for path in (closed, *closed.rglob("*")):
        os.chown(path, 12345, 12345)
    server.start()
    assert postmaster_of(server).uids().effective == server.cluster.stat().st_uid == 12345


@needs_root
def test_a_user_that_several_starts_add_at_once_is_added_once() -> None:
    name = f"holdfast-{uuid4().hex[:8]}"
    try:
        with ThreadPoolExecutor(max_workers=8) as starts:
            users = list(starts.map(system_user, [name] * 8))
        assert {user.pw_uid for user in users} == {pwd.getpwnam(name).pw_uid}
    finally:
        subprocess.run(["userdel", name], check=True)


@needs_root
def test_a_user_that_is_there_is_found_whoever_has_locked_the_folder() -> None:
    with open_descriptor(Path("/etc"), os.O_RDONLY) as folder:
        fcntl.flock(folder, fcntl.LOCK_EX)
        assert system_user("root").pw_uid == 0


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedPostgresError, match=r"data directory .* cannot be used"):
        EmbeddedPostgres(tmp_path / "file" / "data").start()


def test_the_log_is_kept_small(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    for size, kept in ((16 * 1024 * 1024, True), (16 * 1024 * 1024 + 1, False)):
        with log.open("wb") as file:
            file.truncate(size)
        module.keep_log_small(log)
        assert (log.stat().st_size == size) is kept
    assert log.stat().st_size == 0
    older = tmp_path / "postgres.log.1"
    assert (older.stat().st_size, mode_of(older)) == (size, 0o600)
    # Whoever may write into the data directory must not make root write elsewhere.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"kept")
    older.unlink()
    older.symlink_to(elsewhere)
    os.truncate(log, size)
    module.keep_log_small(log)
    assert (elsewhere.read_bytes(), older.stat().st_size) == (b"kept", size)
    log.unlink()
    log.symlink_to(older)
    with pytest.raises(OSError, match="symbolic links"):
        module.keep_log_small(log)
    assert older.stat().st_size == size
