"""Structured logs: one JSON object a line on stderr; on a terminal, a short line for people.

What a line says beyond its message comes as ``extra={"fields": {...}}``.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

_ENCODE = msgspec.json.Encoder(enc_hook=str).encode


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")[:23] + "Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _ENCODE(line).decode()


class TerminalLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).astimezone().strftime("%H:%M:%S")
        duration = getattr(record, "fields", {}).get("durationMs")
        suffix = "" if duration is None else f"  {duration:.1f} ms"
        line = f"{time}  {record.getMessage()}{suffix}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class LinesTogether(logging.StreamHandler[TextIO]):
    """Writes what one turn of the event loop has logged with one system call."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._lines.append(self.format(record))
            if len(self._lines) == 1:
                asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:
            self.flush()

    def flush(self) -> None:
        lines, self._lines = self._lines, []
        if lines:
            self.stream.write("\n".join(lines) + "\n")
        super().flush()


def set_up_logging(stream: TextIO | None = None) -> None:
    stream = stream or sys.stderr
    handler = LinesTogether(stream)
    handler.setFormatter(TerminalLines() if stream.isatty() else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # Where in the code a line was written, and by which thread, is shown nowhere; finding out costs
    # more than writing the line.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    # uvicorn tells of its own life, which the supervisor tells already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
