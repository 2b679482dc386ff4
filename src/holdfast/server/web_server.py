"""uvicorn, as a child of the supervisor."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


class WebServer(uvicorn.Server):
    def leave(self, *_: object) -> None:
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """uvicorn would end by the signal it got; a process that was asked to leave and did ends well."""
        signal.signal(signal.SIGTERM, self.leave)
        yield
