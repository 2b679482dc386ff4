"""What the parts about webhooks share: endpoints, workers, and a like state before every run."""

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from uuid import uuid4

import asyncpg

from benchmarks import database
from benchmarks.contestants import HOLDFAST_COMMAND
from benchmarks.processes import running
from holdfast.domain.endpoint import EndpointConfig, generate_secret
from holdfast.storage import endpoints, log_partitions
from holdfast.storage.notifications import NOTIFY
from holdfast.storage.secrets import NAME as ENCRYPTION_KEYS
from holdfast.storage.secrets import SecretBox

LOOPBACK_ALLOWED = {"HOLDFAST_ALLOWED_NETWORKS": "127.0.0.0/8"}
QUEUE = "endpoint, pending_delivery, in_flight"
FORGET = f"truncate {QUEUE}"
WRITTEN_TO = """
    select relname from pg_stat_user_tables
    where relname ~ '^(ended_delivery|attempt)_' and (n_ins_since_vacuum > 0 or n_mod_since_analyze > 0)
"""
ANNOUNCED = b"Holdfast is working"


def add_endpoints(url: str, endpoint_urls: Sequence[str]) -> None:
    """As the product writes them, with all that a registrant leaves at its default."""
    box = SecretBox([os.environ[ENCRYPTION_KEYS]])

    async def act(connection: asyncpg.Connection) -> None:
        for endpoint_url in endpoint_urls:
            sealed = box.seal(generate_secret())
            await endpoints.insert(connection, uuid4(), EndpointConfig(endpoint_url), None, uuid4(), sealed)

    database.run(url, act)


def forget_endpoints(url: str) -> None:
    """And what is queued for them. The log stays, and has a part for today."""

    async def act(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await log_partitions.create_upcoming(connection)

    database.execute(url, FORGET)
    database.run(url, act)


def forget_log(url: str) -> None:
    database.execute(url, f"truncate {', '.join(log_partitions.TABLES)}")


def tidy(url: str) -> None:
    """Nobody pays for the rows, dead or fresh, that were written before the run, in the log as little as in
    the queue: else the server would tidy up in the middle of some later run."""
    parts = database.run(url, lambda connection: connection.fetch(WRITTEN_TO))
    written_to = ", ".join([QUEUE, *(part["relname"] for part in parts)])
    database.execute(url, f"vacuum (analyze) {written_to}", "checkpoint")


def pause_all(url: str) -> None:
    database.execute(url, "update endpoint set paused = true")
    tidy(url)


def resume_all(url: str) -> None:
    database.execute(url, "update endpoint set paused = false", NOTIFY)


@contextmanager
def workers(database_url: str, logs: Path, count: int) -> Iterator[list[int]]:
    """`holdfast work`, so many times; their process ids."""
    with ExitStack() as stack:
        yield [stack.enter_context(_worker(database_url, logs / f"worker-{n}.log")) for n in range(count)]


@contextmanager
def _worker(database_url: str, log: Path) -> Iterator[int]:
    environment = {"HOLDFAST_DATABASE_URL": database_url, **LOOPBACK_ALLOWED}
    with running(
        [HOLDFAST_COMMAND, "work"], environment, log, lambda: ANNOUNCED in log.read_bytes()
    ) as process:
        yield process.pid


def lag_figure(milliseconds: Sequence[float]) -> dict[str, float]:
    return {
        "deliveries": len(milliseconds),
        "p50_ms": median(milliseconds),
        "p99_ms": quantiles(milliseconds, n=100, method="inclusive")[98],
        "max_ms": max(milliseconds),
    }
