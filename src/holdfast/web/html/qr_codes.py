"""QR codes as one path of a drawing."""

from typing import NamedTuple

import segno


class QrCode(NamedTuple):
    size: int
    """Of the drawing, in modules, with the white border that readers need."""
    path: str


def qr_code(text: str) -> QrCode:
    """The dark modules: each row is drawn as its runs."""
    rows = [bytes(row) for row in segno.make(text, error="m").matrix_iter(border=4)]
    runs = [
        f"M{start} {at}h{end - start}v1h-{end - start}z"
        for at, row in enumerate(rows)
        for start, end in _runs(row)
    ]
    return QrCode(len(rows), "".join(runs))


def _runs(row: bytes) -> list[tuple[int, int]]:
    edges = [at for at in range(len(row) + 1) if _is_dark(row, at) != _is_dark(row, at - 1)]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _is_dark(row: bytes, at: int) -> bool:
    return 0 <= at < len(row) and bool(row[at])
