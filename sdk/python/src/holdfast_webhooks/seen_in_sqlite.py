"""Processed ids in a file: they survive a restart and hold for all the processes of one machine."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Callable

from holdfast_webhooks.seen import Claim

_WAIT_FOR_LOCK_SECONDS = 5
_TRIMMED_AT_ONCE = 20
# The token is null once the delivery is processed; `at` is then when, and before that the end of the claim.
_TABLE = "create table if not exists delivery (id text primary key, token text, at real not null)"
_INDEX = "create index if not exists delivery_at on delivery (at)"


class SeenInSqlite:
    """Keep the file on a local disk: the locks of SQLite are not to be trusted on a network share.

    A claim ends after `claim_seconds`, so that a process killed in mid-handling does not block its
    delivery for good. Ids are kept 100 days, since staff can resend whatever is in the log (90 days).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        keep_seconds: float = 100 * 86_400,
        claim_seconds: float = 60,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._path, self._clock = os.fspath(path), clock
        self._keep_seconds, self._claim_seconds = keep_seconds, claim_seconds
        with self._transaction() as sql:
            sql.execute(_TABLE)
            sql.execute(_INDEX)

    def claim(self, delivery_id: str, token: str) -> Claim:
        now = self._clock()
        with self._transaction() as sql:
            row = sql.execute("select token, at from delivery where id = ?", (delivery_id,)).fetchone()
            if row is not None and row[0] is None:
                return Claim.DONE
            if row is not None and row[1] > now:
                return Claim.BUSY
            _write(sql, delivery_id, token, now + self._claim_seconds)
            return Claim.TAKEN

    def remember(self, delivery_id: str, token: str) -> None:
        now = self._clock()
        with self._transaction() as sql:
            _write(sql, delivery_id, None, now)
            _trim(sql, now - self._keep_seconds)

    def release(self, delivery_id: str, token: str) -> None:
        with self._transaction() as sql:
            sql.execute("delete from delivery where id = ? and token = ?", (delivery_id, token))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """A connection each time: one that is carried over a fork or into another thread breaks SQLite."""
        sql = sqlite3.connect(self._path, timeout=_WAIT_FOR_LOCK_SECONDS, isolation_level=None)
        try:
            # Immediate: of two that read first and write then, SQLite ends one with an error at once.
            sql.execute("begin immediate")
            yield sql
            sql.execute("commit")
        finally:
            sql.close()


def _write(sql: sqlite3.Connection, delivery_id: str, token: str | None, at: float) -> None:
    sql.execute("insert or replace into delivery (id, token, at) values (?, ?, ?)", (delivery_id, token, at))


def _trim(sql: sqlite3.Connection, before: float) -> None:
    """A few at a time, so that no delivery waits for a long clean-up."""
    oldest = "select id from delivery where at < ? order by at limit ?"
    sql.execute(f"delete from delivery where id in ({oldest})", (before, _TRIMMED_AT_ONCE))
