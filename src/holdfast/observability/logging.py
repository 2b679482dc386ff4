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


class RequestLine(msgspec.Struct, rename="camel", gc=False):
    """The line of an answered request: the one line that is written under load."""

    time: str
    level: str
    logger: str
    message: str
    request_id: str
    route: str
    duration_ms: float
    key: str | msgspec.UnsetType


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time_text(datetime.fromtimestamp(record.created, UTC)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return _ENCODE(line).decode()

    def format_request(self, line: RequestLine) -> str:
        return _ENCODE(line).decode()


class TerminalLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{self._clock()}  {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line

    def format_request(self, line: RequestLine) -> str:
        return f"{self._clock()}  {line.message}  {line.duration_ms:.1f} ms"

    def _clock(self) -> str:
        return datetime.now().astimezone().strftime("%H:%M:%S")


class LinesTogether(logging.StreamHandler[TextIO]):
    """Writes what one turn of the event loop has logged with one system call."""

    def __init__(self, stream: TextIO, lines: JsonLines | TerminalLines) -> None:
        super().__init__(stream)
        self.setFormatter(lines)
        self.lines = lines
        self._waiting: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.add(self.format(record))

    def add(self, line: str) -> None:
        self._waiting.append(line)
        if len(self._waiting) > 1:
            return
        try:
            asyncio.get_running_loop().call_soon(self.flush)
        except RuntimeError:
            self.flush()

    def flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self.stream.write("\n".join(waiting) + "\n")
        super().flush()


def set_up_logging(stream: TextIO | None = None) -> None:
    stream = stream or sys.stderr
    root = logging.getLogger()
    root.handlers[:] = [LinesTogether(stream, TerminalLines() if stream.isatty() else JsonLines())]
    root.setLevel(logging.INFO)
    # uvicorn tells of its own life, which the supervisor tells already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def log_request(
    method: str, path: str, status: int, request_id: str, route: str, seconds: float, key: str | None
) -> None:
    """Goes past the logging module, whose record of one request takes as long as its parsing."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LinesTogether):
            line = RequestLine(
                _time_text(datetime.now(UTC)),
                "info",
                "holdfast.request",
                f"{method} {path} {status}",
                request_id,
                route,
                round(seconds * 1000, 3),
                key or msgspec.UNSET,
            )
            handler.add(handler.lines.format_request(line))


def _time_text(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")[:23] + "Z"
