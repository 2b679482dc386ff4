"""The process that does what no request waits for."""

import asyncio
import signal
import sys
from collections.abc import Callable

import uvloop

from holdfast.server.process import child_settings, collect_garbage_rarely, raise_file_limit, stop_with_parent
from holdfast.settings import Settings
from holdfast.wiring import run_background_work


def run(settings: Settings, lifeline: int | None = None, announce: Callable[[], None] = lambda: None) -> None:
    collect_garbage_rarely()
    raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(settings, lifeline, announce))


async def _work(settings: Settings, lifeline: int | None, announce: Callable[[], None]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if lifeline is not None:
        stop_with_parent(lifeline, lambda: loop.call_soon_threadsafe(stop.set))
    announce()
    await run_background_work(settings, stop)


if __name__ == "__main__":
    run(child_settings(), int(sys.argv[1]))
