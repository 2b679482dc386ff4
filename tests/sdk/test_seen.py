"""The stores of processed ids: what both promise, and what is each one's own."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast_webhooks import Claim, SeenElsewhere, SeenIds, SeenInMemory, SeenInSqlite

SDK = Path(__file__).parents[2] / "sdk" / "python" / "src"
THREADS = 8
HOUR_SECONDS = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def seen(request: pytest.FixtureRequest, tmp_path: Path) -> SeenIds:
    stores: dict[str, Callable[[], SeenIds]] = {
        "memory": SeenInMemory,
        "sqlite": lambda: SeenInSqlite(tmp_path / "seen.db"),
    }
    return stores[request.param]()


def test_a_processed_id_is_done(seen: SeenIds) -> None:
    assert seen.claim("a", "1") is Claim.TAKEN
    seen.remember("a", "1")
    assert seen.claim("a", "2") is Claim.DONE
    assert seen.claim("b", "3") is Claim.TAKEN


def test_an_id_under_way_is_busy_until_it_is_released(seen: SeenIds) -> None:
    assert seen.claim("a", "1") is Claim.TAKEN
    assert seen.claim("a", "2") is Claim.BUSY
    seen.release("a", "1")
    assert seen.claim("a", "3") is Claim.TAKEN


def test_nobody_releases_what_another_claimed(seen: SeenIds) -> None:
    seen.claim("a", "1")
    seen.release("a", "2")
    assert seen.claim("a", "3") is Claim.BUSY


def test_nobody_releases_what_is_processed(seen: SeenIds) -> None:
    seen.claim("a", "1")
    seen.remember("a", "1")
    seen.release("a", "1")
    assert seen.claim("a", "2") is Claim.DONE


def test_what_was_processed_counts_even_without_a_claim(seen: SeenIds) -> None:
    seen.remember("a", "1")
    assert seen.claim("a", "2") is Claim.DONE


def test_of_many_threads_one_gets_each_id(seen: SeenIds) -> None:
    barrier = threading.Barrier(THREADS)

    def claim_all(token: str) -> list[Claim]:
        barrier.wait()
        return [seen.claim(f"id {number}", token) for number in range(40)]

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


def test_memory_forgets_by_age(clock: Clock) -> None:
    seen = SeenInMemory(keep_seconds=HOUR_SECONDS, clock=clock)
    seen.remember("a", "1")
    clock.now += HOUR_SECONDS - 1
    assert seen.claim("a", "2") is Claim.DONE
    clock.now += 1
    assert seen.claim("a", "3") is Claim.TAKEN


def test_memory_never_forgets_what_is_under_way(clock: Clock) -> None:
    seen = SeenInMemory(at_most=1, keep_seconds=HOUR_SECONDS, clock=clock)
    seen.claim("under way", "1")
    clock.now += 2 * HOUR_SECONDS
    for name in "abc":
        seen.remember(name, "1")
    assert seen.claim("under way", "2") is Claim.BUSY


def test_the_file_survives_a_restart(tmp_path: Path) -> None:
    SeenInSqlite(tmp_path / "seen.db").remember("a", "1")
    assert SeenInSqlite(tmp_path / "seen.db").claim("a", "2") is Claim.DONE


def test_a_claim_of_a_process_that_died_ends(tmp_path: Path, clock: Clock) -> None:
    seen = SeenInSqlite(tmp_path / "seen.db", claim_seconds=60, clock=clock)
    seen.claim("a", "dead")
    clock.now += 59
    assert seen.claim("a", "2") is Claim.BUSY
    clock.now += 1
    assert seen.claim("a", "3") is Claim.TAKEN
    seen.release("a", "dead")
    assert seen.claim("a", "4") is Claim.BUSY


def test_the_file_is_trimmed_by_age_and_keeps_the_rest(tmp_path: Path, clock: Clock) -> None:
    seen = SeenInSqlite(tmp_path / "seen.db", keep_seconds=HOUR_SECONDS, clock=clock)
    for number in range(5):
        seen.remember(f"old {number}", "1")
    clock.now += HOUR_SECONDS + 1
    seen.remember("young", "1")
    assert seen.claim("young", "2") is Claim.DONE
    assert [seen.claim(f"old {number}", "2") for number in range(5)] == [Claim.TAKEN] * 5


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
    running = [
        subprocess.Popen(
            [*command, str(token)], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for token in range(4)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    lines = [line for process in running for line in process.communicate(timeout=60)[0].splitlines()]
    assert [process.returncode for process in running] == [0] * 4
    assert Counter(line.split()[0] for line in lines if line.endswith("taken")) == {
        str(n): 1 for n in range(30)
    }


def test_elsewhere_gives_every_delivery_to_the_handler() -> None:
    seen: SeenIds = SeenElsewhere()
    assert seen.claim("a", "1") is Claim.TAKEN
    seen.remember("a", "1")
    assert seen.claim("a", "2") is Claim.TAKEN
