"""holdfast serve, holdfast work"""

import asyncio
import json
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import click

from holdfast.cli.output import Output, check_utf8, read_settings, shared_options
from holdfast.observability.logging import set_up_logging
from holdfast.server.process import forbid_inspection
from holdfast.server.serve import serve as run
from holdfast.settings import check_setting_names

_SET_UP = """
  There are no accounts yet. Create the first admin here (the link works once, for one day):

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
            (password and key are new at each start; the last ones no longer work)
  API docs  {address}/docs

  Paste this line into another terminal. It sets the API key that the examples use:

export KEY={key}

  Put a new unit into the demo project:

{put}

  Then hold it as a buyer does, without a key:

{hold}

  Ctrl-C stops everything, the database included.
"""
_WORKING = Output({"working": True}, "Holdfast is working; Ctrl-C stops it.")


@click.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, callback=check_utf8, help="Address to listen on."
)
@click.option(
    "--port", default=8000, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 picks a free one."
)
@click.option(
    "--processes", default=1, show_default=True, type=click.IntRange(1, 1000), help="Web processes."
)
@click.option(
    "--demo", is_flag=True, help="Fill an empty database with sample data; print a sign-in and a key."
)
@click.option("--no-migrate", is_flag=True, help="Leave the schema as it is; stop if it is too old or new.")
@shared_options
def serve(host: str, port: int, processes: int, demo: bool, no_migrate: bool, as_json: bool) -> None:
    """Run everything in one command, until Ctrl-C."""
    forbid_inspection()
    set_up_logging()
    check_setting_names(os.environ)
    settings = read_settings().model_copy(update={"processes": processes})
    run(settings, host, port, demo, not no_migrate, partial(_announce, as_json=as_json))
    _print_stopped(as_json)


@click.command()
@shared_options
def work(as_json: bool) -> None:
    """Run the background work only: any number of these, on any machine, until stopped."""
    # Not imported by `serve`: the supervisor stays small.
    from holdfast.cli.database import database_url
    from holdfast.server import work as work_process
    from holdfast.server.prepare import retry_while_unreachable
    from holdfast.storage.schema import migrate
    from holdfast.storage.secrets import load_encryption_keys

    forbid_inspection()
    set_up_logging()
    check_setting_names(os.environ)
    settings = read_settings()
    # Until the worker handles signals itself, one of them unwinds what was started so far.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with suppress(KeyboardInterrupt), database_url(settings) as url:
        own = settings.model_copy(
            update={"database_url": url, "encryption_keys": load_encryption_keys(settings)}
        )
        with database_url(settings, owner=True) as owner_url:
            asyncio.run(retry_while_unreachable(partial(migrate, owner_url)))
        work_process.run(own, announce=partial(_WORKING.print, as_json))
    _print_stopped(as_json)


def _print_stopped(as_json: bool) -> None:
    """For people; a program sees the end of the process. The terminal may be gone."""
    with suppress(OSError):
        if not as_json:
            click.echo("Holdfast has stopped.", err=True)


def _announce(result: Mapping[str, Any], as_json: bool) -> None:
    document = {name: value for name, value in result.items() if name != "example"}
    text = f"Holdfast is ready at {result['url']}"
    if "setupUrl" in result:
        text += "\n" + _SET_UP.format(url=result["setupUrl"])
    if "key" in result:
        text += "\n" + _demo_text(result)
    Output(document, text).print(as_json)


def _demo_text(result: Mapping[str, Any]) -> str:
    address, example = result["url"], result["example"]
    return _DEMO.format(
        address=address,
        key=result["key"],
        project=result["project"],
        receiver=result["receiver"],
        put=f'curl -X PUT {address}{example["path"]} -H "Authorization: Bearer $KEY"'
        f" -H 'Content-Type: application/json' -d '{json.dumps(example['body'])}'",
        hold=f"curl -X POST {address}{example['holdPath']}",
        **result["signIn"],
    )
