"""The embedded PostgreSQL: made, adopted, shared and stopped, with real servers."""

import os
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from holdfast.storage.embedded.files import FileLock, make_socket_folder, socket_folder
from holdfast.storage.embedded.server import (
    EmbeddedPostgres,
    keep_log_small,
    running_postmaster,
    serving_alone,
    serving_embedded,
    using_embedded,
)
from holdfast.storage.errors import EmbeddedPostgresError
from tests.support.sql import Sql

QUICK = {"fsync": "off", "shared_buffers": "16MB"}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root lends the server a user of its own")
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks into /proc")


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[EmbeddedPostgres]]:
    """Whatever a test puts in here, or starts in its folder, is stopped after it."""
    made: list[EmbeddedPostgres] = []
    yield made
    for server in (*made, EmbeddedPostgres(tmp_path)):
        if server.data_dir.exists():
            server.stop()


@pytest.fixture
def server(tmp_path: Path, servers: list[EmbeddedPostgres]) -> EmbeddedPostgres:
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
        process.send_signal(signal.SIGKILL)
    psutil.wait_procs(family, timeout=10)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("version", [16, 18])
def test_a_new_cluster_is_private_checked_and_utf8(
    tmp_path: Path, servers: list[EmbeddedPostgres], version: int
) -> None:
    servers.append(EmbeddedPostgres(tmp_path, version=version, extra_settings=QUICK))
    with Sql(servers[0].start()) as sql:
        assert sql.value("show server_version_num")[:2] == str(version)
        assert sql.value("show server_encoding") == "UTF8"
        assert sql.value("show data_checksums") == "on"
        assert sql.value("show listen_addresses") == ""
        assert sql.value("show synchronous_commit") == "on"
        assert sql.value("select current_user || '/' || current_database()") == "holdfast/holdfast"
    assert not servers[0].adopted
    assert mode_of(tmp_path / "postgres") == 0o700
    assert mode_of(socket_folder(tmp_path)) == 0o700
    assert mode_of(tmp_path / "postgres.log") == 0o600


def test_commits_are_durable_unless_a_test_says_otherwise(
    tmp_path: Path, servers: list[EmbeddedPostgres]
) -> None:
    servers.append(EmbeddedPostgres(tmp_path))
    with Sql(servers[0].start()) as sql:
        assert sql.value("show fsync") == "on"
        assert sql.value("show full_page_writes") == "on"


def test_what_was_stored_is_there_after_a_stop(server: EmbeddedPostgres) -> None:
    with Sql(server.start()) as sql:
        sql.execute("create table kept as select 42 as number")
    server.stop()
    assert running_postmaster(server.cluster) is None
    with Sql(server.start()) as sql:
        assert sql.value("select number from kept") == 42


def test_an_unfinished_cluster_is_made_again(server: EmbeddedPostgres) -> None:
    unfinished = server.data_dir / "postgres.unfinished"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    server.start()
    assert not unfinished.exists()


def test_a_cluster_of_another_version_is_refused(tmp_path: Path, servers: list[EmbeddedPostgres]) -> None:
    older = EmbeddedPostgres(tmp_path, version=16, extra_settings=QUICK)
    older.start()
    older.stop()
    with pytest.raises(
        EmbeddedPostgresError, match=r"made by PostgreSQL 16, but this release .* PostgreSQL 18"
    ):
        EmbeddedPostgres(tmp_path).start()


def test_a_folder_that_is_no_cluster_is_refused_and_left_alone(server: EmbeddedPostgres) -> None:
    server.cluster.mkdir()
    (server.cluster / "letter.txt").write_text("do not delete")
    with pytest.raises(EmbeddedPostgresError, match="is no PostgreSQL cluster"):
        server.start()
    assert (server.cluster / "letter.txt").read_text() == "do not delete"


def test_a_running_server_is_adopted(server: EmbeddedPostgres) -> None:
    url = server.start()
    second = EmbeddedPostgres(server.data_dir)
    assert second.start() == url
    assert second.adopted
    second.leave()


def test_a_killed_server_is_started_again_and_has_lost_nothing(server: EmbeddedPostgres) -> None:
    with Sql(server.start()) as sql:
        sql.execute("create table kept as select 42 as number")
    kill_everything(server)
    second = EmbeddedPostgres(server.data_dir, extra_settings=QUICK)
    with Sql(second.start()) as sql:
        assert sql.value("select number from kept") == 42
    assert not second.adopted
    second.stop()


def test_a_killed_postmaster_whose_children_linger_is_started_again(server: EmbeddedPostgres) -> None:
    server.start()
    postmaster = postmaster_of(server)
    postmaster.kill()
    psutil.wait_procs([postmaster], timeout=10)
    with Sql(server.start()) as sql:
        assert sql.value("select 1") == 1


def test_a_pid_file_that_names_somebody_else_is_no_server(server: EmbeddedPostgres) -> None:
    server.start()
    pid_file = server.cluster / "postmaster.pid"
    lines = pid_file.read_text().splitlines()
    server.stop()
    pid_file.write_text("\n".join([str(os.getpid()), *lines[1:]]))
    socket_lock = socket_folder(server.data_dir) / ".s.PGSQL.5432.lock"
    socket_lock.write_text("\n".join([str(os.getpid()), *lines[1:5]]))
    assert running_postmaster(server.cluster) is None
    server.start()
    assert not server.adopted


def test_restart_if_ended_starts_a_server_that_died(server: EmbeddedPostgres) -> None:
    server.start()
    assert not server.restart_if_ended()
    kill_everything(server)
    assert server.restart_if_ended()
    with Sql(server.url) as sql:
        assert sql.value("select 1") == 1


def test_a_command_stops_the_server_that_it_started(server: EmbeddedPostgres) -> None:
    with using_embedded(server.data_dir):
        assert running_postmaster(server.cluster) is not None
    assert running_postmaster(server.cluster) is None


def test_a_command_leaves_a_server_that_it_did_not_start(server: EmbeddedPostgres) -> None:
    server.start()
    with using_embedded(server.data_dir):
        pass
    assert running_postmaster(server.cluster) is not None


def test_a_command_leaves_its_own_server_to_somebody_who_uses_it_by_then(server: EmbeddedPostgres) -> None:
    with ExitStack() as second_command:
        with using_embedded(server.data_dir):
            url = second_command.enter_context(using_embedded(server.data_dir))
        with Sql(url) as sql:
            assert sql.value("select 1") == 1


def test_serve_stops_the_server_even_if_it_was_running_before(server: EmbeddedPostgres) -> None:
    server.start()
    second_user = EmbeddedPostgres(server.data_dir)
    second_user.start()
    server.leave()
    second_user.leave()
    with serving_embedded(server.data_dir, connections=100) as served:
        assert served.adopted
    assert running_postmaster(server.cluster) is None


def test_serve_waits_for_a_command_that_is_about_to_finish(server: EmbeddedPostgres) -> None:
    server.start()
    command = EmbeddedPostgres(server.data_dir)
    command.start()
    stopping = threading.Thread(target=server.stop, args=(5.0,))
    stopping.start()
    with Sql(command.url) as sql:
        assert sql.value("select 1") == 1
    assert stopping.is_alive()
    command.leave()
    stopping.join(5.0)
    assert not stopping.is_alive()
    assert running_postmaster(server.cluster) is None


def test_a_second_serve_on_the_same_data_directory_is_refused(tmp_path: Path) -> None:
    second = serving_alone(tmp_path)
    with serving_alone(tmp_path), pytest.raises(EmbeddedPostgresError, match="already running on"):
        second.__enter__()
    with serving_alone(tmp_path):
        pass


@pytest.mark.parametrize("name", ["d" * 90, "with a space", 'quo"ted, $HOME', "بيانات"])
def test_any_name_will_do_for_the_data_directory(
    tmp_path: Path, servers: list[EmbeddedPostgres], name: str
) -> None:
    servers.append(EmbeddedPostgres(tmp_path / name, extra_settings=QUICK))
    with Sql(servers[0].start()) as sql:
        assert sql.value("select 1") == 1
    assert len(os.fsencode(socket_folder(tmp_path / name))) <= 90


def test_nothing_stays_in_the_temporary_directory(tmp_path: Path, servers: list[EmbeddedPostgres]) -> None:
    server = EmbeddedPostgres(tmp_path / ("d" * 90), extra_settings=QUICK)
    servers.append(server)
    server.start()
    assert socket_folder(server.data_dir).exists()
    server.stop()
    assert not socket_folder(server.data_dir).exists()


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
    with pytest.raises(EmbeddedPostgresError, match="belongs to somebody else"):
        make_socket_folder(folder, None)


@needs_root
def test_root_lends_the_server_a_user_and_opens_folders_for_passing_only(
    tmp_path: Path, servers: list[EmbeddedPostgres]
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "data", extra_settings=QUICK)
    servers.append(server)
    server.start()
    assert postmaster_of(server).uids().effective != 0
    assert mode_of(closed) == 0o701
    assert mode_of(server.data_dir) == 0o701
    assert server.cluster.stat().st_uid == postmaster_of(server).uids().effective


@needs_root
def test_root_leaves_a_cluster_to_its_owner(tmp_path: Path, servers: list[EmbeddedPostgres]) -> None:
    server = EmbeddedPostgres(tmp_path, extra_settings=QUICK)
    server.start()
    server.stop()
    for path in (tmp_path, *tmp_path.rglob("*")):
        os.chown(path, 12345, 12345)
    server.start()
    assert postmaster_of(server).uids().effective == 12345
    assert (tmp_path / "postgres").stat().st_uid == 12345


@needs_proc
def test_the_server_holds_none_of_our_locks(server: EmbeddedPostgres) -> None:
    server.start()
    postmaster = postmaster_of(server)
    for process in (postmaster, *postmaster.children()):
        opened = [link.readlink() for link in Path(f"/proc/{process.pid}/fd").iterdir()]
        assert not [path for path in opened if path.suffix == ".lock"]


def test_locks_exclude_each_other_and_end_when_closed(tmp_path: Path) -> None:
    first, second = FileLock(tmp_path / "lock"), FileLock(tmp_path / "lock")
    first.take(exclusive=False)
    assert not second.try_exclusive()
    first.close()
    assert second.try_exclusive()
    second.close()


def test_a_data_directory_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EmbeddedPostgresError, match=r"data directory .* cannot be used"):
        EmbeddedPostgres(tmp_path / "file" / "data").start()


def test_the_log_is_kept_small(tmp_path: Path) -> None:
    log = tmp_path / "postgres.log"
    log.write_bytes(b"x" * (16 * 1024 * 1024 + 1))
    keep_log_small(log)
    assert log.stat().st_size == 0
    assert (tmp_path / "postgres.log.1").stat().st_size == 16 * 1024 * 1024 + 1
