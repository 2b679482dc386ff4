"""The history of a run: what was asked, answered, delivered and broken, one JSON object a line.

Every record has ``at`` (seconds of this machine's clock, which no fault moves) and ``kind``:

``invoke``
    ``call`` (also the request's X-Request-Id), ``client``, ``op``, ``unit``, ``method``, ``path``, ``body``,
    and for a request that was sent before ``repeats``: the first call with the same Idempotency-Key or body.
``ok``
    ``call``, ``status``, ``answer`` (the document), ``etag``: acknowledged.
``fail``
    ``call``, ``status``, ``answer``: refused, so nothing was changed.
``unknown``
    ``call``, ``status`` (None without an answer), ``why``: stored or not.
``arrival``
    ``receiver``, ``delivery``, ``event``, ``timestamp``, ``signature``, ``body``, ``status`` (None: not answered).
``page``
    ``reader``, ``after`` (the cursor), ``events`` (ids in their order), ``next`` (the cursor).
``fault``
    ``number``, ``fault`` (its name), ``phase``: ``begun``, ``seen`` (with ``effect``), ``ended`` or ``recovered``.
``sample``
    ``connections`` (of Holdfast to the primary), ``rss`` (bytes by process name), ``waiting`` (writes in queues).
``epoch``
    ``number``: the database was promoted (``why`` "promotion") or its clock stepped (``why`` "clock").
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Record = dict[str, Any]


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self.acknowledged_at: list[float] = []
        """The times of acknowledged writes, for recovery times and the plot."""
        self.arrived_at: list[float] = []

    def note(self, kind: str, **fields: Any) -> float:
        """Write one record and return its time."""
        at = time.time()
        self._file.write(json.dumps({"at": round(at, 4), "kind": kind, **fields}, ensure_ascii=False) + "\n")
        return at

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read(path: Path) -> Iterator[Record]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
