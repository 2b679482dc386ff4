"""What happens, line by line, where there is no terminal to draw on."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.simulation.story import Happening

LINES_A_SECOND = 10


class Lines:
    """So many a second at most; what is left out is said, and counted in the totals all the same."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._second = 0
        self._written = 0
        self._left_out = 0

    def __call__(self, happening: Happening) -> None:
        self._turn_to(int(happening.seconds))
        if self._written == LINES_A_SECOND:
            self._left_out += 1
            return
        self._written += 1
        self._write(line_of(happening))

    def close(self) -> None:
        self._turn_to(self._second + 1)

    def _turn_to(self, second: int) -> None:
        if second == self._second:
            return
        if self._left_out:
            self._write(f"{'':7}and {self._left_out} more")
        self._second, self._written, self._left_out = second, 0, 0


def clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:02}:{rest:02}"


def line_of(happening: Happening) -> str:
    return f"{clock(happening.seconds)}  {happening.who:<20}  {happening.what}"
