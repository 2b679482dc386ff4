"""holdfast serve, holdfast work"""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from holdfast.cli.output import print_json, print_result, read_settings, shared_options, utf8_only
from holdfast.observability.logging import set_up_logging
from holdfast.server.serve import Demo, Served
from holdfast.server.serve import serve as run
from holdfast.settings import check_setting_names

_SET_UP = """
  Nobody can sign in yet. Make the first admin here, once, within a day:

  {url}
"""
_DEMO = """
  Start at  {address}/
            five things to try, from buying a unit to watching its webhooks
  Buy       {project}
  Webhooks  {receiver}
  Sign in   {url}
            {email}
            {password}
  API key   {key}
            (password and key are new at each start; the last ones no longer work)
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
_WORKING = "Holdfast is working; Ctrl-C stops it."


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, callback=utf8_only, help="Address to listen on."
)
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option(
    "--processes", default=1, show_default=True, type=click.IntRange(1, 1000), help="Web processes."
)
@click.option("--demo", is_flag=True, help="Fill an empty database; print a sign-in and a key.")
@shared_options
def serve(host: str, port: int, processes: int, demo: bool, data: Path | None, as_json: bool) -> None:
    """Run everything in one command, until Ctrl-C."""
    set_up_logging()
    check_setting_names(os.environ)
    settings = read_settings(data).model_copy(update={"processes": processes})
    run(settings, host, port, demo, partial(_announce, as_json=as_json))


@click.command()
@shared_options
def work(data: Path | None, as_json: bool) -> None:
    """Run the background work only: any number of these, on any machine, until stopped."""
    # Not imported by `serve`: the supervisor stays small.
    from holdfast.cli.database import database_url
    from holdfast.server import work as work_process
    from holdfast.server.prepare import migrate_when_reachable
    from holdfast.storage.secrets import load_encryption_keys

    set_up_logging()
    check_setting_names(os.environ)
    settings = read_settings(data)
    # Until the worker handles signals itself, one of them unwinds what was started so far.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), database_url(settings) as url:
        own = settings.model_copy(
            update={"database_url": url, "encryption_keys": load_encryption_keys(settings)}
        )
        asyncio.run(migrate_when_reachable(url))
        work_process.run(own, announce=partial(print_result, as_json, {"working": True}, _WORKING))


def _announce(served: Served, as_json: bool) -> None:
    if as_json:
        print_json(_document(served))
        return
    click.echo(f"Holdfast is ready at {served.address}")
    if served.setup_url is not None:
        click.echo(_SET_UP.format(url=served.setup_url))
    if served.demo is not None:
        click.echo(_demo_text(served.address, served.demo))


def _document(served: Served) -> dict[str, Any]:
    document: dict[str, Any] = {"url": served.address}
    if served.setup_url is not None:
        document["setupUrl"] = served.setup_url
    if served.demo is not None:
        document |= {
            "key": served.demo.key,
            "signIn": served.demo.sign_in,
            "project": served.demo.project,
            "receiver": served.demo.receiver,
        }
    return document


def _demo_text(address: str, demo: Demo) -> str:
    example = "" if demo.example is None else _example_text(address, demo.key, demo.example)
    project = demo.project or "(the demo's project is not in this database)"
    return _DEMO.format(
        key=demo.key,
        address=address,
        example=example,
        project=project,
        receiver=demo.receiver,
        **demo.sign_in,
    )


def _example_text(address: str, key: str, example: Mapping[str, Any]) -> str:
    put = _curl_put(address, key, example["path"], example["body"])
    return _EXAMPLE.format(put=put, hold=f"curl -X POST {address}{example['holdPath']}")


def _curl_put(address: str, key: str, path: str, body: Mapping[str, Any]) -> str:
    return (
        f"curl -X PUT {address}{path} -H 'Authorization: Bearer {key}'"
        f" -H 'Content-Type: application/json' -d '{json.dumps(body)}'"
    )
