"""Long work shows that it is alive: one line on stderr, rewritten on a terminal, kept in a log."""

import sys
import time


class Progress:
    def __init__(self) -> None:
        self._started = time.monotonic()
        self._rewrites = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        line = f"[{minutes:02}:{seconds:02}] {text}"
        if self._rewrites:
            print(f"\r\033[K{line[:150]}", end="", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def done(self) -> None:
        if self._rewrites:
            print(file=sys.stderr)
