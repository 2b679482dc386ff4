"""How many statements a request costs, as PostgreSQL itself has logged them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.sql import Sql

# Transactions are not counted, but what is done in them.
_LOGGED = re.compile(
    r"\[(\d+)\] LOG:  (?:execute [^:]+|statement): (?!\s*(?:BEGIN|COMMIT|ROLLBACK|LISTEN|RESET|SET))",
    re.IGNORECASE,
)
_OF_WEB_PROCESSES = """
    select pid::text from pg_stat_activity
    where datname = current_database() and application_name = 'holdfast'
"""


class Statements:
    def __init__(self, sql: Sql, log: Path) -> None:
        self._sql = sql
        self._log = log
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Of the web processes, from here to the end of the block."""
        before = self._log.stat().st_size
        yield
        with self._log.open(errors="replace") as log:
            log.seek(before)
            logged = log.read()
        pids = {row["pid"] for row in self._sql.rows(_OF_WEB_PROCESSES)}
        self.count = sum(1 for pid in _LOGGED.findall(logged) if pid in pids)


def log_statements(sql: Sql) -> None:
    """From the next connection on."""
    name = sql.value("select current_database()")
    sql.execute(f'alter database "{name}" set log_statement = "all"')
