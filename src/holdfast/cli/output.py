"""What commands print: one JSON object for programs, calm text for people."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

F = TypeVar("F", bound=Callable[..., Any])

_data = click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory of the embedded database.  [default: HOLDFAST_DATA_DIR or ./data]",
)
_as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


def shared_options(command: F) -> F:
    return _data(_as_json(command))


def print_json(document: Mapping[str, Any] | msgspec.Struct) -> None:
    click.echo(json.dumps(document, ensure_ascii=False, default=msgspec.to_builtins))


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


def shown_time(moment: datetime | None) -> str:
    return "-" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")
