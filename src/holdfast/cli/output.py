"""Options and output that commands share: one JSON object for programs, text for people."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from holdfast.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the embedded database.  [default: HOLDFAST_DATA_DIR or ./data]",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def shared_options(command: F) -> F:
    return _data(_as_json(command))


def read_settings(data: Path | None) -> Settings:
    settings = Settings.from_environment(os.environ)
    return settings if data is None else settings.model_copy(update={"data_dir": data.absolute()})


def print_json(document: Mapping[str, Any] | msgspec.Struct) -> None:
    click.echo(json.dumps(document, ensure_ascii=False, default=msgspec.to_builtins))


def print_result(as_json: bool, document: Mapping[str, Any] | msgspec.Struct, text: str) -> None:
    if as_json:
        print_json(document)
    else:
        click.echo(text)


def print_table(headings: Sequence[str], rows: Sequence[Sequence[str]], if_empty: str) -> None:
    if not rows:
        click.echo(if_empty)
        return
    widths = [max(len(row[column]) for row in (headings, *rows)) for column in range(len(headings))]
    for row in (headings, *rows):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())


def wire_time(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def format_time(moment: datetime | None) -> str:
    return "-" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


def utf8_only(_: click.Context, __: click.Parameter, value: Iterable[str] | None) -> Iterable[str] | None:
    """Reject bytes that are not UTF-8, which arrive as lone surrogates, in one text or a repeated option."""
    try:
        "".join(value or ()).encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8.") from None
    return value


limited_to_projects = click.option(
    "--project",
    "projects",
    multiple=True,
    callback=utf8_only,
    metavar="SLUG",
    help="Limit it to projects; may be repeated.",
)


_EVERY_SECONDS = 1.0
_WIDTH = 60
_STEP = 1024


class Progress:
    """A progress line on stderr, which is overwritten; none where stderr is no terminal."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._next_at = time.monotonic() + _EVERY_SECONDS

    def update(self, text: str) -> None:
        """Write the text, at most once a second."""
        now = time.monotonic()
        if self._is_terminal and now >= self._next_at:
            self._next_at = now + _EVERY_SECONDS
            click.echo(f"\r{text:<{_WIDTH}}", err=True, nl=False)

    def clear(self) -> None:
        if self._is_terminal:
            click.echo(f"\r{'':<{_WIDTH}}\r", err=True, nl=False)


@contextmanager
def progress_line() -> Iterator[Progress]:
    progress = Progress()
    try:
        yield progress
    finally:
        progress.clear()


def format_bytes(number: int) -> str:
    """``1.4 MiB``"""
    size, units = float(number), iter(("KiB", "MiB", "GiB"))
    unit = "bytes"
    while size >= _STEP and (larger := next(units, None)):
        size, unit = size / _STEP, larger
    return f"{number} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
