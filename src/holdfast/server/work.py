"""The process that does what no request waits for."""

import asyncio
import signal
from collections.abc import Callable

import uvloop

from holdfast.server.process import read_settings, send_heartbeats, set_limits, stop_with_parent
from holdfast.settings import Settings
from holdfast.wiring import EmailRenderer, run_background_work


def run(settings: Settings, announce: Callable[[], None] | None = None) -> None:
    """``announce`` is given if there is no supervisor."""
    set_limits()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_work(settings, announce))


async def _work(settings: Settings, announce: Callable[[], None] | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if announce is None:
        stop_with_parent(lambda: loop.call_soon_threadsafe(stop.set))
        send_heartbeats()
    else:
        announce()
    renderer: EmailRenderer | None = None
    if settings.smtp_url is not None:
        # Only then: templates, translations and PDFs take memory.
        from holdfast.web.emails import email_renderer as renderer
    await run_background_work(settings, stop, renderer)


if __name__ == "__main__":
    run(Settings.from_environment(read_settings()))
