"""Structured logs: one JSON object a line on stderr; on a terminal, a short line for people."""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

_ENCODE = msgspec.json.Encoder(enc_hook=str).encode
_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {
    "message",
    "asctime",
    "taskName",
    "color_message",
}


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:23] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= _extra(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _ENCODE(line).decode()


class TerminalLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        duration = getattr(record, "durationMs", None)
        suffix = "" if duration is None else f"  {duration:.1f} ms"
        line = f"{time}  {record.getMessage()}{suffix}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def set_up_logging(stream: TextIO | None = None) -> None:
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(TerminalLines() if stream.isatty() else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # uvicorn tells of its own life, which the supervisor tells already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    return {
        name: value
        for name, value in vars(record).items()
        if name not in _OWN_ATTRIBUTES and value is not None
    }
