"""A child process of the supervisor: its settings, its heartbeats, and its end with that of its parent.

All three pass through its stdin: a socket whose other end the supervisor alone has.
"""

import asyncio
import ctypes
import gc
import json
import os
import resource
import select
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from holdfast.observability.logging import set_up_logging

# Longer than the time that open requests are given to finish.
_LAST_RESORT_SECONDS = 20.0
# A batch makes thousands of short-lived objects, hardly one of them in a cycle.
_COLLECTION_THRESHOLDS = (100_000, 20, 20)


def read_settings() -> dict[str, Any]:
    """Return what the supervisor sends: in the environment, other processes could read it."""
    forbid_inspection()
    set_up_logging()
    settings: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    os.set_blocking(sys.stdin.fileno(), False)
    return settings


def forbid_inspection() -> None:
    """Keep other processes of this user from the memory, environment and files of this one, on Linux."""
    with suppress(AttributeError):
        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE


def stop_with_parent(stop: Callable[[], object]) -> None:
    """Stop when the supervisor ends: the kernel closes its end of the socket, even by kill -9.

    A thread sees that end even when the event loop is stuck.
    """

    def wait_for_parent() -> None:
        select.select([sys.stdin], [], [])
        stop()
        time.sleep(_LAST_RESORT_SECONDS)
        os._exit(1)

    threading.Thread(target=wait_for_parent, name="parent", daemon=True).start()


def send_heartbeats() -> None:
    """Send a byte each second from the event loop. A process that hangs does not."""
    with suppress(OSError):  # the supervisor has ended, or has not read for minutes
        os.write(sys.stdin.fileno(), b".")
    asyncio.get_running_loop().call_later(1.0, send_heartbeats)


def set_limits() -> None:
    """Allow as many connections as the system permits, and collect garbage less often."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    gc.freeze()
    gc.set_threshold(*_COLLECTION_THRESHOLDS)
