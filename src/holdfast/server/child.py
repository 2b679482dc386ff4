"""What every child process of the supervisor needs: its settings, and a way never to be left over."""

import os
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
