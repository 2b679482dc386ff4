"""The small square that leads from a paper to its booking; alone it opens nothing."""

from __future__ import annotations

from base64 import b64encode
from functools import lru_cache
from io import BytesIO

import segno


@lru_cache(maxsize=256)
def code_picture(address: str) -> str:
    """As SVG. It takes long enough to be drawn in a thread, and only once."""
    drawn = BytesIO()
    code = segno.make(address, error="m", micro=False)
    code.save(drawn, kind="svg", border=0, xmldecl=False, nl=False, omitsize=True)
    return drawn.getvalue().decode()


def code_source(address: str) -> str:
    """For the ``src`` of a picture."""
    return "data:image/svg+xml;base64," + b64encode(code_picture(address).encode()).decode()
