"""Stops the clockwork of a server and lets it go on, to see the world before and after a release."""

from collections.abc import Callable

import psutil

from tests.support.server import RunningServer
from tests.support.sql import Sql

WORKER = "holdfast.server.work"
TRIES = 500
LOOKS = 10
PAUSE = "select pg_sleep(0.01)"

# A session that waits for the rest of a statement counts as active.
ANYBODY_BUSY = """
    select exists(
        select from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()
            and backend_type = 'client backend' and state <> 'idle'
    )
"""


class Clockwork:
    """The worker process of a server that is alone on its database."""

    def __init__(self, server: RunningServer, sql: Sql) -> None:
        self._sql = sql
        children = psutil.Process(server.process.pid).children(recursive=True)
        (self._process,) = [child for child in children if WORKER in child.cmdline()]

    def stop(self) -> None:
        """Between two of its rounds: one that is stopped within a transaction keeps its locks."""
        for _ in range(TRIES):
            if self._sql.value(ANYBODY_BUSY):
                self._sql.value(PAUSE)
                continue
            self._process.suspend()
            if self._is_at_rest():
                return
            self.go_on()
        raise AssertionError("the worker process is always within a transaction")

    def go_on(self) -> None:
        self._process.resume()

    def go_on_until(self, done: Callable[[], bool]) -> None:
        self.go_on()
        for _ in range(TRIES):
            if done():
                return
            self._sql.value(PAUSE)
        raise AssertionError("the clockwork has not done what was waited for")

    def _is_at_rest(self) -> bool:
        for _ in range(LOOKS):
            if self._process.status() == psutil.STATUS_STOPPED and not self._sql.value(ANYBODY_BUSY):
                return True
            self._sql.value(PAUSE)
        return False
