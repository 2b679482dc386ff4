"""What many ask for at once is read once, and never before it was asked for."""

import asyncio

import pytest

from holdfast.operations.listings import SharedReads


class Source:
    """Is read as long as the test says."""

    def __init__(self) -> None:
        self.reads = 0
        self.go_on = asyncio.Event()

    async def read(self) -> int:
        self.reads += 1
        number = self.reads
        await self.go_on.wait()
        return number


async def _arrive(count: int, reads: SharedReads, source: Source) -> list[asyncio.Task[int]]:
    tasks = [asyncio.ensure_future(reads.read("key", source.read)) for _ in range(count)]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def _come_while_it_is_read() -> tuple[list[int], list[int]]:
    reads, source = SharedReads(), Source()
    first = await _arrive(3, reads, source)
    later = await _arrive(3, reads, source)
    source.go_on.set()
    return await asyncio.gather(*first), await asyncio.gather(*later)


def test_those_who_come_while_it_is_read_share_the_next_read() -> None:
    assert asyncio.run(_come_while_it_is_read()) == ([1, 1, 1], [2, 2, 2])


async def _leave() -> int:
    reads, source = SharedReads(), Source()
    leaving, staying = await _arrive(2, reads, source)
    leaving.cancel()
    source.go_on.set()
    return await staying


def test_one_who_goes_away_takes_nothing_from_the_others() -> None:
    assert asyncio.run(_leave()) == 1


async def _fail() -> int:
    reads = SharedReads()

    async def failing() -> int:
        raise LookupError

    with pytest.raises(LookupError):
        await reads.read("key", failing)
    source = Source()
    source.go_on.set()
    return await reads.read("key", source.read)


def test_a_read_that_fails_is_no_hindrance_to_the_next() -> None:
    assert asyncio.run(_fail()) == 1
