"""How our things are written in JSON."""

from __future__ import annotations

from datetime import datetime

import msgspec

from holdfast.domain.spelling import camel_case as camel_case

_ENCODER = msgspec.json.Encoder(decimal_format="number")

encode = _ENCODER.encode


def time_text(moment: datetime) -> str:
    """What ``domain.spelling.moment_text`` writes, in a quarter of its time: every answer has several."""
    text = encode(moment).decode()
    # The encoder writes microseconds if there are any: "2026-11-14T09:30:00.123000Z", quotes included.
    return f"{text[1:24]}Z" if moment.microsecond else f"{text[1:20]}.000Z"


def optional_time_text(moment: datetime | None) -> str | None:
    return None if moment is None else time_text(moment)
