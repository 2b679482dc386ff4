"""Where the time of an attempt went, as the parts of one bar."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.operations.deliveries import Attempt

WIDTH = 600
_LEAST = 3.0


class Part(NamedTuple):
    name: str
    """``dns``, ``connect``, ``tls``, ``wait`` or ``rest``."""
    milliseconds: float
    x: float
    width: float


def timing_bar(attempt: Attempt) -> list[Part]:
    """In the order in which they happened; a connection that is used again has no beginning."""
    known = [
        ("dns", attempt.dns_ms),
        ("connect", attempt.connect_ms),
        ("tls", attempt.tls_ms),
        ("wait", attempt.first_byte_ms),
    ]
    parts = [(name, value) for name, value in known if value is not None and value >= 0]
    rest = attempt.duration_ms - sum(value for _, value in parts)
    return _drawn([*parts, ("rest", max(rest, 0.0))])


def _drawn(parts: list[tuple[str, float]]) -> list[Part]:
    """Each wide enough to be seen, together as wide as the bar."""
    total = sum(value for _, value in parts) or 1.0
    wanted = [max(WIDTH * value / total, _LEAST) for _, value in parts]
    scale = WIDTH / sum(wanted)
    drawn, x = [], 0.0
    for (name, value), width in zip(parts, wanted, strict=True):
        drawn.append(Part(name, value, round(x, 2), round(width * scale, 2)))
        x += width * scale
    return drawn
