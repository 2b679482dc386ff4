"""Where a benchmark takes place: a durable PostgreSQL, databases on it, contestants and progress."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import psutil

from benchmarks import database, workload
from benchmarks.contestants import HOLDFAST_COMMAND, Ground, add_key, add_project, run_holdfast
from benchmarks.machine import file_system_of
from benchmarks.processes import cpu_seconds
from benchmarks.progress import Progress
from holdfast.storage.embedded.server import EmbeddedPostgres

IN_MEMORY = ("tmpfs", "ramfs")
HOLDFASTS = ("holdfast", "before")
DURABLE = ("fsync", "synchronous_commit", "full_page_writes")


class NotDurable(Exception):
    """Numbers of a database that may lose what it acknowledged are worth nothing."""


@dataclass
class Arena:
    server_url: str
    logs: Path
    progress: Progress
    quick: bool
    grounds: dict[tuple[str, int], Ground] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for setting in DURABLE:
            if database.value(self.server_url, f"show {setting}") != "on":
                raise NotDurable(f"PostgreSQL runs with {setting} off; the benchmark needs durable commits.")

    def ground(self, name: str, units: int, program: str = HOLDFAST_COMMAND) -> Ground:
        """A database of its own with that many units, made by the project's own migration.

        ``program`` is the command of another checkout, whose schema may be another.
        """
        if (name, units) not in self.grounds:
            self.progress(f"preparing the database of {name} with {units:,} units")
            self.grounds[name, units] = self._make_ground(name, units, program)
        return self.grounds[name, units]

    def _make_ground(self, name: str, units: int, program: str) -> Ground:
        url = self._make_database(f"bench_{name}_{units}", program)
        if name in HOLDFASTS:
            add_project(url, workload.SLUG, program)
            key = add_key(url, program)
        else:
            key = database.add_project_and_key(url)
        database.seed_units(url, units, self.progress)
        return Ground(url, key, units)

    def _make_database(self, name: str, program: str) -> str:
        database.execute(
            self.server_url, f"drop database if exists {name} with (force)", f"create database {name}"
        )
        url = urlsplit(self.server_url)._replace(path=f"/{name}").geturl()
        run_holdfast(url, "migrate", program=program)
        return url

    def postgres_cpu_seconds(self) -> float:
        return cpu_seconds(self._postmaster())

    def _postmaster(self) -> int:
        async def parent_of_own_backend(connection: asyncpg.Connection) -> int:
            return int(psutil.Process(connection.get_server_pid()).ppid())

        return database.run(self.server_url, parent_of_own_backend)


@contextmanager
def own_cluster(folder: Path) -> Iterator[str]:
    """The embedded PostgreSQL, exactly as the product runs it; everybody connects as its owner."""
    if file_system_of(folder) in IN_MEMORY:
        raise NotDurable(f"{folder} lies in memory; set TMPDIR to a folder on a disk.")
    postgres = EmbeddedPostgres(folder)
    postgres.start()
    try:
        yield postgres.owner_url
    finally:
        postgres.stop()
