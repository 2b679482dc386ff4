"""PostgreSQL clusters from the wheel, and fresh migrated databases on them for little money."""

import signal
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import psutil

from holdfast.storage.embedded.server import EmbeddedPostgres
from tests.support import commands
from tests.support.sql import Sql, with_database

NEWEST = 18
TEMPLATE = "migrated_template"
# Nothing here outlives its test, so nothing need reach the disk.
SETTINGS = {"fsync": "off", "max_connections": "200"}


class Cluster:
    def __init__(self, folder: Path, version: int = NEWEST) -> None:
        self._postgres = EmbeddedPostgres(folder, version=version, extra_settings=SETTINGS)
        self._has_template = False
        self.url = ""

    def start(self) -> None:
        self.url = self._postgres.start()

    @property
    def log(self) -> Path:
        return self._postgres.log

    def stop(self) -> None:
        self._postgres.stop()

    def crash(self) -> None:
        """As if the power had failed: no goodbye to clients, no checkpoint."""
        postmaster = self.postmaster()
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait(30)

    def postmaster(self) -> psutil.Process:
        lock_file = self._postgres.cluster / "postmaster.pid"
        return psutil.Process(int(lock_file.read_text().splitlines()[0]))

    def new_database(self) -> str:
        """The URL of a database of its own, with the schema of today and nothing in it."""
        if not self._has_template:
            self._make_template()
        name = f"test_{uuid4().hex}"
        self._execute(f"create database {name} template {TEMPLATE}")
        return with_database(self.url, name)

    def drop_database(self, url: str) -> None:
        name = url.split("?")[0].rsplit("/", 1)[1]
        self._execute(f"drop database if exists {name} with (force)")

    def _make_template(self) -> None:
        self._execute(f"create database {TEMPLATE}")
        commands.run({"HOLDFAST_DATABASE_URL": with_database(self.url, TEMPLATE)}, "migrate")
        self._has_template = True

    def _execute(self, statement: str) -> None:
        with Sql(with_database(self.url, "postgres")) as sql:
            sql.execute(statement)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
