"""Structured logs: one JSON object a line on stderr; on a terminal, a short line for people.

What a line says beyond its message comes as ``extra={"fields": {...}}``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from datetime import UTC, datetime
from functools import lru_cache
from time import time
from typing import Any, TextIO

import msgspec

_ENCODER = msgspec.json.Encoder(enc_hook=str)


class RequestLine(msgspec.Struct, rename="camel", gc=False):
    """The line of an answered request: the one line that is written under load."""

    time: str
    level: str
    logger: str
    message: str
    request_id: str
    route: str
    client: str
    duration_ms: float
    key: str | msgspec.UnsetType


Line = RequestLine | dict[str, Any]


class JsonLines:
    def of_record(self, record: logging.LogRecord) -> Line:
        line: dict[str, Any] = {
            "time": _time_text(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = logging.Formatter().formatException(record.exc_info)
        return line

    def text(self, lines: list[Line]) -> str:
        try:
            return _ENCODER.encode_lines(lines).decode()
        except UnicodeEncodeError:
            # A lone surrogate in one of them; the others are written all the same.
            return "".join(f"{json.dumps(msgspec.to_builtins(line, enc_hook=str))}\n" for line in lines)


class TerminalLines:
    def of_record(self, record: logging.LogRecord) -> Line:
        line = record.getMessage()
        if record.exc_info:
            line += "\n" + logging.Formatter().formatException(record.exc_info)
        return {"message": line}

    def text(self, lines: list[Line]) -> str:
        clock = datetime.now().astimezone().strftime("%H:%M:%S")
        return "".join(f"{clock}  {self._message(line)}\n" for line in lines)

    def _message(self, line: Line) -> str:
        if isinstance(line, RequestLine):
            return f"{line.message}  {line.duration_ms:.1f} ms"
        return str(line["message"])


class LinesTogether(logging.StreamHandler[TextIO]):
    """Writes what one turn of the event loop has logged with one system call."""

    def __init__(self, stream: TextIO, lines: JsonLines | TerminalLines) -> None:
        super().__init__(stream)
        self._lines = lines
        self._waiting: list[Line] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.add(self._lines.of_record(record))

    def add(self, line: Line) -> None:
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
            self.stream.write(self._lines.text(waiting))
        super().flush()


_request_lines: LinesTogether | None = None


def set_up_logging(stream: TextIO | None = None) -> None:
    global _request_lines
    stream = stream or sys.stderr
    _request_lines = LinesTogether(stream, TerminalLines() if stream.isatty() else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [_request_lines]
    root.setLevel(logging.INFO)
    # uvicorn tells of its own life, which the supervisor tells already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def log_request(
    method: str,
    path: str,
    status: int,
    *,
    request_id: str,
    route: str,
    client: str,
    seconds: float,
    key: str | None,
) -> None:
    """Go past the logging module, whose record takes as long as parsing the request."""
    if _request_lines is not None:
        _request_lines.add(
            RequestLine(
                _time_text(time()),
                "info",
                "holdfast.request",
                f"{method} {path} {status}",
                request_id,
                route,
                client,
                round(seconds * 1000, 3),
                key or msgspec.UNSET,
            )
        )


def _time_text(moment: float) -> str:
    second, milliseconds = divmod(int(moment * 1000), 1000)
    return f"{_second_text(second)}.{milliseconds:03}Z"


@lru_cache(maxsize=2)
def _second_text(second: int) -> str:
    """Under load many lines have the same."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
