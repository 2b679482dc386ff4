"""Rows and findings as they are kept: packed, compressed, a transaction's worth at a time."""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

import msgspec

from holdfast.domain.imports import Contents, Row
from holdfast.domain.message import AnyMessage

ROWS_A_PART = 1000

_LEVEL = 3
Packed = TypeVar("Packed")


def pack(things: Any) -> bytes:
    return zlib.compress(msgspec.msgpack.encode(things), _LEVEL)


def unpack(kind: type[Packed], packed: bytes) -> Packed:
    return msgspec.msgpack.decode(zlib.decompress(packed), type=kind)


def unpack_rows(packed: bytes) -> list[Row]:
    return unpack(list[Row], packed)


class Reply(msgspec.Struct):
    """What the process that reads a file tells of it."""

    fault: AnyMessage = ""
    contents: Contents | None = None
    parts: list[list[bytes]] = []
    """The packed rows of each sheet."""
