"""Pieces of SVG that all drawings share."""

from __future__ import annotations

from html import escape

from holdfast.demo.plans.furniture import n

FONT = "Inter,'IBM Plex Sans Arabic','Segoe UI','Noto Sans Arabic',system-ui,sans-serif"


def text(x: float, y: float, said: str, look: str, size: float | None = None) -> str:
    own = "" if size is None else f' font-size="{n(size)}"'
    across = f' x="{n(x)}"' if x else ""
    return f'<text class="{look}"{across} y="{n(y)}"{own}>{escape(said)}</text>'


def path(d: str, look: str) -> str:
    return f'<path class="{look}" d="{d}"/>' if d else ""
