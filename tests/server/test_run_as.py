"""Root starts `serve`: the processes that strangers talk to have another user, and keep their secrets."""

import json
import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import psutil
import pytest

from holdfast.server.run_as import check_user
from holdfast.settings import Settings, WrongSetting
from holdfast.storage.embedded.cluster import program_environment
from holdfast.storage.embedded.files import SOCKET_NAME, SYSTEM_USER
from tests.docs.documents import ROOT
from tests.support import server as servers
from tests.support.import_files import uploaded
from tests.support.processes import children
from tests.support.projects import add_project
from tests.support.server import WEBHOOKS, wait_until
from tests.support.sql import Sql
from tests.support.staff_client import People

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs processes as another user")
# The process that reads an uploaded file tries to read those around it, and itself.
INTRUDER = """
import json, os, sys

def parent_of(pid):
    return int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])

def readable(pid):
    names = []
    for name in ("environ", "mem", "maps", "fd"):
        try:
            path = f"/proc/{pid}/{name}"
            os.listdir(path) if name == "fd" else open(path, "rb").close()
            names.append(name)
        except PermissionError:
            pass
    return names

if "holdfast.web.spreadsheets.file_parser" in sys.orig_argv:
    links = {}
    for name in os.listdir("/proc/self/fd"):
        if os.path.lexists(f"/proc/self/fd/{name}"):
            links[int(name)] = os.readlink(f"/proc/self/fd/{name}")
    own = {links[0], links[1], links[2], os.path.join(os.path.dirname(__file__), "intruder.pth")}
    supervisor = parent_of(os.getppid())
    family = [supervisor]
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            family += [int(pid)] if parent_of(pid) == supervisor else []
        except FileNotFoundError:
            pass
    found = {pid: readable(pid) for pid in ("self", *family)}
    with open(FOUND + ".new", "w") as file:
        json.dump({"inherited": sorted(set(links.values()) - own), "readable": found}, file)
    os.rename(FOUND + ".new", FOUND)
"""
KEY_FILE = {"HOLDFAST_ENCRYPTION_KEYS": ""}
SERVE = "from holdfast.cli import main; main()"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Where every user may pass, unlike in the folders of tests."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def install(folder: Path) -> Path:
    """Return the interpreter of an installation in this folder, which has this checkout."""
    for python in (Path(sys.executable).resolve(), Path("/usr/bin/python3.11")):
        packages = folder / "lib" / "python3.11" / "site-packages"
        packages.mkdir(parents=True, exist_ok=True)
        (packages / "checkout.pth").write_text(f"{ROOT / 'src'}\n{sysconfig.get_path('purelib')}\n")
        (folder / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
        own = folder / "bin" / "python"
        own.parent.mkdir(exist_ok=True)
        own.unlink(missing_ok=True)
        own.symlink_to(python)
        try:
            subprocess.run([own, "-c", "import holdfast.server.web"], user=NOBODY, check=True)
        except (OSError, subprocess.CalledProcessError):
            continue
        return own
    pytest.skip("no other user can read the interpreter, or this checkout")


@needs_root
@pytest.mark.slow
def test_web_and_worker_have_a_user_of_their_own_and_no_other_process_reads_their_secrets(
    folder: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, found = install(folder / "holdfast"), folder / "found" / "found.json"
    found.parent.mkdir()
    found.parent.chmod(0o777)
    packages = folder / "holdfast" / "lib" / "python3.11" / "site-packages"
    (packages / "intruder.py").write_text(f"FOUND = {str(found)!r}\n{INTRUDER}")
    (packages / "intruder.pth").write_text("import intruder\n")
    socket_folder = Path(parse_qs(urlsplit(postgres_url).query)["host"][0])
    socket_folder.chmod(0o711)
    (socket_folder / SOCKET_NAME).chmod(0o777)
    monkeypatch.setattr(servers, "HOLDFAST", folder / "serve")
    servers.HOLDFAST.write_text(f"#!{python}\n{SERVE}\n")
    servers.HOLDFAST.chmod(0o755)
    with servers.serving(folder, {"HOLDFAST_DATABASE_URL": postgres_url}, "--demo") as server:
        own = pwd.getpwnam("holdfast-web")
        assert own.pw_uid not in (0, pwd.getpwnam("holdfast").pw_uid)
        family = children(server)
        assert sorted(child.cmdline()[3] for child in family) == [
            f"holdfast.server.{name}" for name in ("external", "web", "work")
        ]
        for child in family:
            assert set(child.uids()) == {own.pw_uid}
            assert set(child.gids()) == {own.pw_gid}
            with suppress(psutil.AccessDenied):  # not every root may look
                environment = child.environ()
                assert environment["HOME"] == own.pw_dir
                for secret in (*WEBHOOKS, *WEBHOOKS.values(), postgres_url, "HOLDFAST_", "DEMO"):
                    assert secret not in str(environment)
        assert "stay root" not in server.log.read_text()
        assert "holdfast_http_requests_total" in httpx.get(f"{server.address}/metrics").text
        with Sql(postgres_url) as sql:
            people = People(sql, server.address)
            uploaded(people.signed_in("sales"), add_project(sql), "Code,Type,Area,Price\r\nA,Villa,1,1\r\n")
            people.leave()
        wait_until(found.exists)
        told = json.loads(found.read_text())
        everybody = {str(pid) for pid in ("self", server.process.pid, *(child.pid for child in family))}
        assert told["readable"].keys() >= everybody
        assert [pid for pid, names in told["readable"].items() if names] == ["self"]
        assert told["inherited"] == []
        # A successor has the same user and the same secrets.
        (web,) = children(server, "web")
        web.kill()
        wait_until(lambda: children(server, "web") not in ([], [web]))
        wait_until(lambda: is_ready(server.address))
        assert children(server, "web")[0].uids().real == own.pw_uid


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz", timeout=60).status_code == 200
    except httpx.TransportError:
        return False


@needs_root
def test_serve_says_so_and_stays_root_where_the_user_cannot_read_the_installation(
    folder: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = folder / "private"
    private.mkdir(mode=0o700)
    (private / "python").symlink_to(sys.executable)
    monkeypatch.setattr(servers, "HOLDFAST", private / "serve")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'src'}:{sysconfig.get_path('purelib')}")
    servers.HOLDFAST.write_text(f"#!{private / 'python'}\n{SERVE}\n")
    servers.HOLDFAST.chmod(0o755)
    with servers.serving(folder, {"HOLDFAST_DATABASE_URL": postgres_url}) as server:
        lines = [line for line in server.log.read_text().splitlines() if "stay root" in line]
        assert ["holdfast-web cannot run Holdfast here" in line for line in lines] == [True]
        assert {child.uids().real for child in children(server)} == {0}
        assert httpx.get(f"{server.address}/metrics").status_code == 200
    assert private.stat().st_mode & 0o777 == 0o700


@needs_root
@pytest.mark.slow
def test_the_user_reaches_the_embedded_database_but_none_of_its_files_or_serve_stays_root(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python, data = install(folder / "holdfast"), folder / "data"
    monkeypatch.setattr(servers, "HOLDFAST", folder / "serve")
    servers.HOLDFAST.write_text(f"#!{python}\n{SERVE}\n")
    servers.HOLDFAST.chmod(0o755)
    with servers.serving(folder, {**KEY_FILE, "HOLDFAST_DATA_DIR": str(data)}) as server:
        own = pwd.getpwnam("holdfast-web").pw_uid
        assert {child.uids().real for child in children(server)} == {own}
        files = ("database-passwords", "encryption-keys", "postgres.log", "postgres/PG_VERSION")
        os.seteuid(own)
        try:
            assert not [name for name in files if os.access(data / name, os.R_OK, effective_ids=True)]
        finally:
            os.seteuid(0)
        assert all((data / name).exists() for name in files)
    shutil.chown(data, SYSTEM_USER)
    data.chmod(0o700)
    with servers.serving(folder, {"HOLDFAST_DATA_DIR": str(data)}) as server:
        (line,) = [line for line in server.log.read_text().splitlines() if "stay root" in line]
        assert f"Permission denied: '{data}/socket" in line
        assert {child.uids().real for child in children(server)} == {0}
    assert data.stat().st_mode & 0o777 == 0o700


def wrong_user(name: str, **settings: object) -> str:
    with pytest.raises(WrongSetting) as refused:
        check_user(Settings.model_validate({"run_as": name, **settings}))
    return str(refused.value).removeprefix(f"HOLDFAST_RUN_AS is {name!r}, but ")


@needs_root
def test_a_user_that_would_not_be_a_lesser_one_is_refused(tmp_path: Path) -> None:
    assert wrong_user("nobody-here") == "there is no such user on this machine."
    forbidden = "must be neither root nor the user of PostgreSQL or of the data directory."
    assert wrong_user("root") == wrong_user("holdfast") == forbidden
    nobody = pwd.getpwuid(NOBODY).pw_name
    (tmp_path / "postgres").mkdir()
    os.chown(tmp_path / "postgres", NOBODY, NOBODY)
    assert wrong_user(nobody, data_dir=tmp_path) == forbidden
    os.chown(tmp_path / "postgres", 0, 0)
    os.chown(tmp_path, NOBODY, NOBODY)
    assert wrong_user(nobody, data_dir=tmp_path) == forbidden
    check_user(Settings(run_as=nobody))
    os.seteuid(NOBODY)
    try:
        check_user(Settings())
        check_user(Settings(run_as=nobody))
        assert wrong_user("daemon") == "only root can run processes as another user."
    finally:
        os.seteuid(0)


def test_postgres_gets_no_settings_of_holdfast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEYS", "not for the database")
    assert "not for the database" not in program_environment().values()
