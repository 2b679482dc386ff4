"""holdfast serve"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from holdfast.cli.output import print_json, shared_options
from holdfast.observability.logging import set_up_logging
from holdfast.processes.serving import Served
from holdfast.processes.serving import serve as run
from holdfast.settings import Settings

_DEMO = """
  API key   {key}
            (new at each start; the last one no longer works)
  API docs  {address}/docs
{example}
  Ctrl-C stops everything, the database included.
"""
_EXAMPLE = """
  Put a new unit into the demo project by pasting this line:

{put}

  Then hold it as a buyer does, without a key:

{hold}
"""


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option(
    "--processes", default=1, show_default=True, type=click.IntRange(1, 1000), help="Web processes."
)
@click.option("--demo", is_flag=True, help="Fill an empty database with a project, and print a key.")
@shared_options
def serve(host: str, port: int, processes: int, demo: bool, data: Path | None, as_json: bool) -> None:
    """Run everything in one command, until Ctrl-C."""
    set_up_logging()
    settings = replace(Settings.from_environment(os.environ), processes=processes)
    if data is not None:
        settings = replace(settings, data_dir=data.absolute())
    run(settings, host, port, demo, partial(_announce, as_json=as_json))


def _announce(served: Served, as_json: bool) -> None:
    if as_json:
        key = {} if served.demo_key is None else {"key": served.demo_key}
        print_json({"url": served.address, **key})
        return
    click.echo(f"Holdfast is ready at {served.address}")
    if served.demo_key is not None:
        click.echo(_demo_text(served))


def _demo_text(served: Served) -> str:
    example = "" if served.demo_example is None else _example_text(served, served.demo_example)
    return _DEMO.format(key=served.demo_key, address=served.address, example=example)


def _example_text(served: Served, example: Mapping[str, Any]) -> str:
    put = _curl_put(served, example["path"], example["body"])
    return _EXAMPLE.format(put=put, hold=f"curl -X POST {served.address}{example['holdPath']}")


def _curl_put(served: Served, path: str, body: Mapping[str, Any]) -> str:
    return (
        f"curl -X PUT {served.address}{path} -H 'Authorization: Bearer {served.demo_key}'"
        f" -H 'Content-Type: application/json' -d '{json.dumps(body)}'"
    )
