"""kill -9 under load: what was acknowledged is there after the next start."""

import os
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.support import commands
from tests.support import server as servers
from tests.support.bodies import minimal
from tests.support.client import Project, Unit, integration_client
from tests.support.feed import chain_is_unbroken, read_on
from tests.support.server import RunningServer

CLIENTS = 16
UNITS_EACH = 2
WRITES_BEFORE_THE_KILL = 400


@dataclass
class Load:
    """Clients that write until their server is gone, and what they were told was stored."""

    server: RunningServer
    key: str
    project: Project
    acknowledged: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    enough: threading.Event = field(default_factory=threading.Event)

    def run_until_killed(self, *, database_too: bool) -> None:
        threads = [threading.Thread(target=self._write, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        assert self.enough.wait(60), "the clients did not get far enough to be interrupted"
        kill_the_tree(self.server, database_too=database_too)
        for thread in threads:
            thread.join()

    def _write(self, number: int) -> None:
        with integration_client(self.server.address, self.key, may_fail=True) as http:
            units = [Unit(http, self.project, f"C{number}-{n}") for n in range(UNITS_EACH)]
            price = 0
            while self._put_all(units, price := price + 1):
                pass

    def _put_all(self, units: list[Unit], price: int) -> bool:
        """Whether there is still a server. Each price is one more than the last, each status the other."""
        for unit in units:
            status = "available" if price % 2 else "unavailable"
            try:
                answer = unit.put(minimal(priceSar=price, status=status))
            except httpx.TransportError:
                return False
            if answer.status_code == 503:
                return False
            if answer.status_code not in (200, 201):
                self.failures.append(answer.text)
                return False
            self.acknowledged[unit.code] = price
        if sum(self.acknowledged.values()) >= WRITES_BEFORE_THE_KILL:
            self.enough.set()
        return True


def kill_the_tree(server: RunningServer, *, database_too: bool) -> None:
    """Every process that `serve` started, without a word of warning, the supervisor first."""
    family = [server.process.pid, *(child.pid for child in psutil.Process(server.process.pid).children(True))]
    if database_too:
        family += [process.pid for process in postgres_of(server)]
    for pid in family:
        with suppress(ProcessLookupError):  # It may have gone with its parent.
            os.kill(pid, signal.SIGKILL)
    server.process.wait()


def postgres_of(server: RunningServer) -> list[psutil.Process]:
    """The postmaster and its children, found by the lock file that it keeps in its data directory."""
    (lock_file,) = server.log.parent.rglob("postmaster.pid")
    postmaster = psutil.Process(int(lock_file.read_text().splitlines()[0]))
    return [postmaster, *postmaster.children(recursive=True)]


@pytest.fixture
def settings(tmp_path: Path) -> dict[str, str]:
    return {"HOLDFAST_DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def restarted(request: pytest.FixtureRequest, tmp_path: Path, settings: dict[str, str]) -> Iterator[Load]:
    """The load of a server that was killed, with its successor on the same data directory."""
    server = servers.start(tmp_path, settings)
    created = commands.run_for_json(settings, "project", "add", "tower", "--name", "The Tower")
    key = commands.run_for_json(settings, "key", "add", "--name", "load")["key"]
    load = Load(server, key, Project(created["id"], "tower", "The Tower"))
    load.run_until_killed(database_too=request.param)
    with servers.serving(tmp_path, settings) as successor:
        load.server = successor
        yield load


@pytest.mark.parametrize("restarted", [False, True], indirect=True, ids=["serve", "serve and its database"])
def test_every_acknowledged_write_survives_kill_9(restarted: Load) -> None:
    assert restarted.failures == []
    assert len(restarted.acknowledged) == CLIENTS * UNITS_EACH
    with integration_client(restarted.server.address, restarted.key) as http:
        for code, price in restarted.acknowledged.items():
            stored = Unit(http, restarted.project, code).read()
            # The write that was under way when the server died may be stored or not.
            assert stored["priceSar"] in (price, price + 1), code
            assert stored["status"] == ("available" if stored["priceSar"] % 2 else "unavailable")
        assert_every_change_has_its_event(http, restarted)


def assert_every_change_has_its_event(http: httpx.Client, load: Load) -> None:
    """Creation is no event, and each later write was a change of status."""
    chains: dict[str, list[dict[str, Any]]] = defaultdict(list)
    events, _ = read_on(http, None)
    for event in events:
        chains[event["data"]["unit"]["code"]].append(event)
    for code in load.acknowledged:
        stored = Unit(http, load.project, code).read()
        assert len(chains[code]) == stored["priceSar"] - 1
        assert chain_is_unbroken(chains[code])
        if chains[code]:
            assert chains[code][-1]["data"]["unit"]["status"] == stored["status"]
            assert chains[code][-1]["createdAt"] == stored["updatedAt"]
