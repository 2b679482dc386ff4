"""What every child process of the supervisor needs: its settings, and a way never to be left over."""

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


def child_settings() -> Settings:
    set_up_logging()
    return Settings.from_environment(os.environ)


def leave_with_parent(lifeline: int, leave: Callable[[], object]) -> None:
    """The supervisor alone has the other end of this pipe, which closes with it, even by kill -9.

    A thread sees that end even when the event loop is stuck.
    """
    threading.Thread(target=_watch, args=(lifeline, leave), name="lifeline", daemon=True).start()


def _watch(lifeline: int, leave: Callable[[], object]) -> None:
    os.read(lifeline, 1)
    leave()
    time.sleep(_LAST_RESORT_SECONDS)
    os._exit(1)


# Every attempt is a connection, and every connection is a file.


def allow_many_files() -> None:
    """As many as the system lets this user have; the customary limit is below what a worker may open."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


# How often a process looks for garbage.

# A batch makes thousands of short-lived objects, hardly one of them in a cycle.
_COLLECT_SELDOM = (100_000, 20, 20)


def collect_seldom() -> None:
    """For a process that has loaded what it needs: that stays for good, and need not be looked at again."""
    gc.freeze()
    gc.set_threshold(*_COLLECT_SELDOM)
