"""What a stretch of time cost the server and PostgreSQL, and how much of the machine others had meanwhile."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.arena import Arena
from benchmarks.quietness import busy_seconds, foreign_percent, own_seconds


@dataclass(frozen=True, slots=True)
class Spent:
    server_cpu_seconds: float
    postgres_cpu_seconds: float
    foreign_percent: float


class Account:
    """Opened before a load, and closed after it, when all programs of the load have ended."""

    def __init__(self, arena: Arena, server_cpu: Callable[[], float]) -> None:
        self._arena = arena
        self._server_cpu = server_cpu
        self._busy, self._own = busy_seconds(), own_seconds()
        self._server, self._postgres = server_cpu(), arena.postgres_cpu_seconds()

    def close(self, seconds: float) -> Spent:
        server = self._server_cpu() - self._server
        postgres = self._arena.postgres_cpu_seconds() - self._postgres
        ours = own_seconds() - self._own + server + postgres
        return Spent(server, postgres, foreign_percent(busy_seconds() - self._busy, ours, seconds))
