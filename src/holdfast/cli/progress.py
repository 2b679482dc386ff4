"""How far a long command is, for whoever sits at a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import click

_EVERY_SECONDS = 1.0
_WIDTH = 60
_STEP = 1024


class Progress:
    """One line on stderr that is written over. Where nobody watches there is none."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()
        self._next_at = time.monotonic() + _EVERY_SECONDS

    def tell(self, text: str) -> None:
        """At most once a second, however often there is something to tell."""
        now = time.monotonic()
        if self._is_watched and now >= self._next_at:
            self._next_at = now + _EVERY_SECONDS
            click.echo(f"\r{text:<{_WIDTH}}", err=True, nl=False)

    def clear(self) -> None:
        if self._is_watched:
            click.echo(f"\r{'':<{_WIDTH}}\r", err=True, nl=False)


@contextmanager
def showing_progress() -> Iterator[Progress]:
    progress = Progress()
    try:
        yield progress
    finally:
        progress.clear()


def shown_bytes(number: int) -> str:
    """``1.4 MiB``"""
    size, units = float(number), iter(("KiB", "MiB", "GiB"))
    unit = "bytes"
    while size >= _STEP and (larger := next(units, None)):
        size, unit = size / _STEP, larger
    return f"{number} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
