"""Stops the background work of a real server, so that no expired hold is released."""

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def stopped_worker(server: RunningServer, sql: Sql) -> Iterator[None]:
    """Suspend the worker process of a server that is alone on its database."""
    children = psutil.Process(server.process.pid).children(recursive=True)
    (worker,) = [child for child in children if WORKER in child.cmdline()]
    try:
        _suspend(worker, sql)
        yield
    finally:
        worker.resume()


def _suspend(worker: psutil.Process, sql: Sql) -> None:
    """Between two of its rounds: one that is stopped within a transaction keeps its locks."""
    for _ in range(TRIES):
        if sql.value(ANYBODY_BUSY):
            sql.value(PAUSE)
            continue
        worker.suspend()
        if _is_at_rest(worker, sql):
            return
        worker.resume()
    raise AssertionError("the worker process is always within a transaction")


def _is_at_rest(worker: psutil.Process, sql: Sql) -> bool:
    for _ in range(LOOKS):
        if worker.status() == psutil.STATUS_STOPPED and not sql.value(ANYBODY_BUSY):
            return True
        sql.value(PAUSE)
    return False
