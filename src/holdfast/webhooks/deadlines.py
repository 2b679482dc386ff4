"""The deadlines of all attempts under way, on a single timer.

All have the same time, so the first to start is the first to be due. A timer for each, as in
``asyncio.timeout``, would cost more than the rest of an attempt on a connection that stands.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from types import TracebackType


class DeadlinePassed(Exception):
    pass


class Deadline:
    """Cancels the task that entered it, and turns that into ``DeadlinePassed`` on the way out.

    A task that somebody else cancelled as well stays cancelled.
    """

    def __init__(self, deadlines: Deadlines, due_at: float) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.due_at = due_at
        self._deadlines = deadlines
        self._task = task
        self._cancelled_before = task.cancelling()
        self._has_passed = False

    def pass_by(self) -> None:
        self._has_passed = True
        self._task.cancel()

    def __enter__(self) -> None:
        self._deadlines.add(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.discard(self)
        is_ours = self._has_passed and self._task.uncancel() <= self._cancelled_before
        if is_ours and (kind is None or issubclass(kind, asyncio.CancelledError)):
            raise DeadlinePassed from error


class Deadlines:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[Deadline, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def starting_at(self, started_at: float) -> Deadline:
        """By ``perf_counter``."""
        return Deadline(self, started_at + self._seconds)

    def add(self, deadline: Deadline) -> None:
        self._running[deadline] = None
        if self._timer is None:
            self._wake_at(deadline.due_at)

    def discard(self, deadline: Deadline) -> None:
        # The timer stays: it wakes for the earliest that is running by then.
        self._running.pop(deadline, None)

    def pass_all(self) -> None:
        """Now, whatever time they had left."""
        running, self._running = list(self._running), {}
        for deadline in running:
            deadline.pass_by()

    def close(self) -> None:
        if self._timer is not None and not self._running:
            self._timer.cancel()
            self._timer = None

    def _wake_at(self, due_at: float) -> None:
        delay = max(0.001, due_at - perf_counter())
        self._timer = asyncio.get_running_loop().call_later(delay, self._wake)

    def _wake(self) -> None:
        self._timer = None
        now = perf_counter()
        for deadline in list(self._running):
            if deadline.due_at > now:
                self._wake_at(deadline.due_at)
                return
            del self._running[deadline]
            deadline.pass_by()
