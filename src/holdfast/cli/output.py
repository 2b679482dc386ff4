"""Options and output that commands share: one JSON object for programs, text for people."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import click
import msgspec

from holdfast.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

_PROGRESS_SECONDS = 1.0
_PROGRESS_WIDTH = 60


class CommandError(click.ClickException):
    """Ends the command with exit code 1; the message is one sentence for the user."""

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"holdfast: {self.message}", file, err=True)


class Output(NamedTuple):
    document: Mapping[str, Any] | msgspec.Struct
    text: str
    note: str = ""
    """A text for stderr, so that stdout has only what is to be copied."""

    def print(self, as_json: bool) -> None:
        if as_json:
            print_json(self.document)
            return
        click.echo(self.text)
        if self.note:
            click.echo(self.note, err=True)


def print_json(document: Mapping[str, Any] | msgspec.Struct, *, to_stderr: bool = False) -> None:
    click.echo(json.dumps(document, ensure_ascii=False, default=msgspec.to_builtins), err=to_stderr)


def shared_options(command: F) -> F:
    """Add --data, which `read_settings` reads, and --json, which the command takes as ``as_json``."""
    return _data(_as_json(command))


def _store_data_dir(context: click.Context, _: click.Parameter, data: Path | None) -> None:
    context.obj = data


_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    callback=_store_data_dir,
    expose_value=False,
    help="Directory of the embedded database.  [default: HOLDFAST_DATA_DIR or ./data]",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def read_settings() -> Settings:
    settings, data = Settings.from_environment(os.environ), click.get_current_context().obj
    if data is None:
        return settings
    if settings.database_url is not None:
        raise click.UsageError(
            "--data names an embedded database, and HOLDFAST_DATABASE_URL a service; leave out one of them."
        )
    return settings.model_copy(update={"data_dir": data.absolute()})


def check_utf8(_: click.Context, __: click.Parameter, value: Iterable[str] | None) -> Iterable[str] | None:
    """Reject bytes that are not UTF-8, which arrive as lone surrogates, in one text or a repeated option."""
    try:
        "".join(value or ()).encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8.") from None
    return value


projects_option = click.option(
    "--project",
    "projects",
    multiple=True,
    callback=check_utf8,
    metavar="SLUG",
    help="Limit it to projects; may be repeated.",
)


def choices_option(flag: str, name: str, choices: Iterable[str], text: str) -> Callable[[F], F]:
    return click.option(flag, name, multiple=True, type=click.Choice([*map(str, choices)]), help=text)


def format_table(headings: Sequence[str], rows: Sequence[Sequence[str]], if_empty: str) -> str:
    if not rows:
        return if_empty
    widths = [max(map(len, column)) for column in zip(headings, *rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in (headings, *rows))
    return "\n".join(lines)


def format_time(at: datetime | None) -> str:
    return "-" if at is None else f"{at:%Y-%m-%d %H:%M UTC}"


def format_bytes(number: int) -> str:
    for power, unit in ((3, "GiB"), (2, "MiB"), (1, "KiB")):
        if number >= 1024**power:
            return f"{number / 1024**power:.1f} {unit}"
    return f"{number} bytes"


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a text on stderr, at most once a second, if stderr is a terminal."""
    is_terminal, next_at = sys.stderr.isatty(), time.monotonic() + _PROGRESS_SECONDS

    def show(text: str) -> None:
        nonlocal next_at
        if is_terminal and time.monotonic() >= next_at:
            next_at = time.monotonic() + _PROGRESS_SECONDS
            click.echo(f"\r{text:<{_PROGRESS_WIDTH}}", err=True, nl=False)

    try:
        yield show
    finally:
        if is_terminal:
            click.echo(f"\r{'':<{_PROGRESS_WIDTH}}\r", err=True, nl=False)
