"""Structured logs: one JSON object a line on stderr; on a terminal, a short line for people.

Fields beyond the message are given as ``extra={"fields": {...}}``.
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


class BatchHandler(logging.StreamHandler[TextIO]):
    """Writes what one turn of the event loop has logged with one system call."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._format_lines = _format_for_terminal if stream.isatty() else _format_as_json
        self._waiting: list[dict[str, Any]] = []

    def emit(self, record: logging.LogRecord) -> None:
        message, fields = record.getMessage(), getattr(record, "fields", {})
        line = _line(record.created, record.levelname.lower(), record.name, message, fields)
        if record.exc_info:
            line["exception"] = logging.Formatter().formatException(record.exc_info)
        self.add(line)

    def add(self, line: dict[str, Any]) -> None:
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
            self.stream.write(self._format_lines(waiting))
        super().flush()


_request_handler: BatchHandler | None = None


def set_up_logging(stream: TextIO | None = None) -> None:
    global _request_handler
    _request_handler = BatchHandler(stream or sys.stderr)
    root = logging.getLogger()
    root.handlers[:] = [_request_handler]
    root.setLevel(logging.INFO)
    # uvicorn logs its start and stop, which the supervisor logs already.
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def log_request(message: str, fields: dict[str, Any]) -> None:
    """Go past the logging module, whose record takes as long as parsing the request."""
    if _request_handler is not None:
        _request_handler.add(_line(time(), "info", "holdfast.request", message, fields))


def _line(at: float, level: str, logger: str, message: str, fields: dict[str, Any]) -> dict[str, Any]:
    second, milliseconds = divmod(int(at * 1000), 1000)
    timestamp = f"{_format_second(second)}.{milliseconds:03}Z"
    return {"time": timestamp, "level": level, "logger": logger, "message": message, **fields}


@lru_cache(maxsize=2)
def _format_second(second: int) -> str:
    """A request's line takes 6 µs with this cache, and 10 µs without it."""
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _format_as_json(lines: list[dict[str, Any]]) -> str:
    try:
        return _ENCODER.encode_lines(lines).decode()
    except UnicodeEncodeError:
        # A lone surrogate in one of them; the others are written all the same.
        return "".join(f"{json.dumps(line, default=str)}\n" for line in lines)


def _format_for_terminal(lines: list[dict[str, Any]]) -> str:
    clock = datetime.now().astimezone().strftime("%H:%M:%S")
    text = ""
    for line in lines:
        details = f"  {line['durationMs']:.1f} ms" if "durationMs" in line else ""
        details += f"  {line['client']}" if "client" in line else ""
        exception = f"\n{line['exception']}" if "exception" in line else ""
        text += f"{clock}  {line['message']}{details}{exception}\n"
    return text
