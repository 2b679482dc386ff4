"""Long work runs in a thread beside the event loop, and short work at once."""

from threading import get_ident

import pytest

from holdfast.operations.layouts import run_in_thread


async def test_little_is_worked_out_at_once() -> None:
    assert await run_in_thread(10, get_ident) == get_ident()


async def test_much_is_worked_out_in_a_thread_of_its_own() -> None:
    assert await run_in_thread(100_000, get_ident) != get_ident()


@pytest.mark.parametrize("things", [10, 100_000])
async def test_the_result_is_the_same(things: int) -> None:
    assert await run_in_thread(things, sorted, [3, 1, 2], reverse=True) == [3, 2, 1]


@pytest.mark.parametrize("things", [10, 100_000])
async def test_what_the_work_raises_is_raised(things: int) -> None:
    with pytest.raises(ValueError, match="x"):
        await run_in_thread(things, int, "x")
