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
    ``call``, ``status`` (None without an answer), ``why``: it may be stored, or not.
``arrival``
    ``receiver``, ``delivery``, ``event``, ``timestamp``, ``signature``, ``body``, ``status`` and
    ``answered_at`` or None. Its ``at`` is when the request had come, though it is noted when it has ended.
``page``
    ``reader``, ``after`` (the cursor), ``events`` (ids in their order), ``next`` (the cursor).
``stale``
    ``call``, ``unit``, ``read``, ``acknowledged``: a read that shows less than was acknowledged before.
``fault``
    ``number``, ``fault`` (its name), ``lane``, ``phase``: ``begun``, ``seen`` (with ``effect``) or ``ended``.
``sample``
    ``connections`` (of Holdfast to databases), ``rss`` (bytes by process), ``waiting`` (writes in a queue).
``clock``
    ``seconds``: a step of the databases' clock.
``settled``
    ``seconds`` after the last fault (None: not in time), ``left``: what was not over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

Record = dict[str, Any]
CLOCK_STEP_SECONDS = 600


class History:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("w", encoding="utf-8")
        self.acknowledged_at: list[float] = []
        """The times of acknowledged writes, which the clients add."""
        self.arrived_at: list[float] = []
        """The times of successful deliveries."""
        self.settled_seconds: float | None = None

    def note(self, kind: str, **fields: Any) -> float:
        """Write one record and return its time."""
        at = time.time()
        if kind == "arrival" and 200 <= (fields["status"] or 0) < 300:
            self.arrived_at.append(at)
        elif kind == "settled":
            self.settled_seconds = fields["seconds"]
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
