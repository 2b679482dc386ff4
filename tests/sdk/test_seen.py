"""The stores of processed ids: what both promise, and what is each one's own."""

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from holdfast_webhooks import Claim, SeenIds, SeenInMemory, SeenInSqlite

SDK = Path(__file__).parents[2] / "sdk" / "python" / "src"
THREADS = 8
HOUR_SECONDS = 3600.0


@pytest.fixture
def clock() -> Mock:
    return Mock(return_value=1_000_000.0)


@pytest.fixture(params=["memory", "sqlite"])
def seen(request: pytest.FixtureRequest, tmp_path: Path) -> SeenIds:
    return SeenInMemory() if request.param == "memory" else SeenInSqlite(tmp_path / "seen.db")


def test_a_processed_id_is_done_whoever_releases_it_and_even_without_a_claim(seen: SeenIds) -> None:
    assert seen.claim("a", "1") is Claim.TAKEN
    seen.remember("a", "1")
    seen.release("a", "1")
    assert seen.claim("a", "2") is Claim.DONE
    seen.remember("b", "1")
    assert seen.claim("b", "2") is Claim.DONE
    assert seen.claim("c", "3") is Claim.TAKEN


def test_an_id_under_way_is_busy_until_who_claimed_it_releases_it(seen: SeenIds) -> None:
    assert seen.claim("a", "1") is Claim.TAKEN
    assert seen.claim("a", "2") is Claim.BUSY
    seen.release("a", "2")
    assert seen.claim("a", "3") is Claim.BUSY
    seen.release("a", "1")
    assert seen.claim("a", "3") is Claim.TAKEN


def test_of_many_threads_one_gets_each_id(seen: SeenIds) -> None:
    barrier = threading.Barrier(THREADS)

    def claim_all(token: str) -> list[Claim]:
        barrier.wait()
        return [seen.claim(f"id {number}", token) for number in range(20)]

    with ThreadPoolExecutor(THREADS) as pool:
        claims = list(pool.map(claim_all, map(str, range(THREADS))))
    for of_one_id in zip(*claims, strict=True):
        assert Counter(of_one_id) == {Claim.TAKEN: 1, Claim.BUSY: THREADS - 1}


def test_memory_keeps_no_more_than_it_is_told_and_forgets_the_oldest_first() -> None:
    seen = SeenInMemory(at_most=2)
    for name in "abc":
        seen.claim(name, "1")
        seen.remember(name, "1")
    assert [seen.claim(name, "2") for name in "cba"] == [Claim.DONE, Claim.DONE, Claim.TAKEN]


def test_both_forget_by_age_and_keep_the_rest(tmp_path: Path, clock: Mock) -> None:
    for_an_hour: dict[str, Any] = {"keep_seconds": HOUR_SECONDS, "clock": clock}
    for seen in (SeenInMemory(**for_an_hour), SeenInSqlite(tmp_path / "seen.db", **for_an_hour)):
        seen.remember("old", "1")
        clock.return_value += HOUR_SECONDS - 1
        assert seen.claim("old", "2") is Claim.DONE
        seen.remember("young", "1")
        clock.return_value += 2
        seen.remember("another", "1")
        assert [seen.claim(name, "3") for name in ("young", "old")] == [Claim.DONE, Claim.TAKEN]


def test_memory_never_forgets_what_is_under_way(clock: Mock) -> None:
    seen = SeenInMemory(at_most=1, keep_seconds=HOUR_SECONDS, clock=clock)
    seen.claim("under way", "1")
    clock.return_value += 2 * HOUR_SECONDS
    for name in "abc":
        seen.remember(name, "1")
    assert seen.claim("under way", "2") is Claim.BUSY


def test_a_claim_of_a_process_that_died_ends(tmp_path: Path, clock: Mock) -> None:
    seen = SeenInSqlite(tmp_path / "seen.db", claim_seconds=60, clock=clock)
    seen.claim("a", "dead")
    clock.return_value += 59
    assert seen.claim("a", "2") is Claim.BUSY
    clock.return_value += 1
    assert seen.claim("a", "3") is Claim.TAKEN
    seen.release("a", "dead")
    assert seen.claim("a", "4") is Claim.BUSY


CLAIM_IN_A_PROCESS = """
import sys
from holdfast_webhooks import SeenInSqlite
seen = SeenInSqlite(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for number in range(30):
    print(number, seen.claim(f"id {number}", sys.argv[2]).value)
"""


def test_of_several_processes_one_gets_each_id(tmp_path: Path) -> None:
    command = [sys.executable, "-c", CLAIM_IN_A_PROCESS, str(tmp_path / "seen.db")]
    environment = {"PYTHONPATH": str(SDK)}
    start = partial(subprocess.Popen[str], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    running = [start([*command, str(token)], text=True) for token in range(3)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = [line for process in running for line in process.communicate(timeout=120)[0].splitlines()]
    assert [process.returncode for process in running] == [0] * 3
    taken = Counter(line.split()[0] for line in lines if line.endswith("taken"))
    assert taken == {str(number): 1 for number in range(30)}
