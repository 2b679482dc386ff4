"""The settings and the limits of a child process of the supervisor, and its end with that of its parent."""

import gc
import os
import resource
import threading
import time
from collections.abc import Callable

from holdfast.observability.logging import set_up_logging
from holdfast.settings import Settings

# Longer than the time that open requests are given to finish.
_LAST_RESORT_SECONDS = 20.0
# A batch makes thousands of short-lived objects, hardly one of them in a cycle.
_COLLECTION_THRESHOLDS = (100_000, 20, 20)


def child_settings() -> Settings:
    set_up_logging()
    return Settings.from_environment(os.environ)


def stop_with_parent(lifeline: int, stop: Callable[[], object]) -> None:
    """Stop when the supervisor ends: it alone has the other end of this pipe, which closes even by kill -9.

    A thread sees that end even when the event loop is stuck.
    """

    def wait_for_parent() -> None:
        os.read(lifeline, 1)
        stop()
        time.sleep(_LAST_RESORT_SECONDS)
        os._exit(1)

    threading.Thread(target=wait_for_parent, name="lifeline", daemon=True).start()


def raise_file_limit() -> None:
    """Allow as many files as the system permits: every attempt to deliver is a connection, and so a file."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def collect_garbage_rarely() -> None:
    """Exempt what a process has loaded from garbage collection, and collect the rest less often."""
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
