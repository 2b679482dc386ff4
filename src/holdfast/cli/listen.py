"""holdfast listen"""

import asyncio
import signal
from functools import partial
from pathlib import Path
from typing import Any

import click

from holdfast.cli.database import with_database
from holdfast.cli.output import print_json, read_settings, shared_options, utf8_only
from holdfast.domain.endpoint import generate_secret
from holdfast.domain.endpoint_url import InvalidEndpointUrl, parse_endpoint_url
from holdfast.domain.event import EventName
from holdfast.domain.message import optional_text
from holdfast.storage.database import Database
from holdfast.webhooks.forwarder import Forwarded
from holdfast.wiring import open_forwarder

POLL_SECONDS = 0.3


def _check_url(_: click.Context, __: click.Parameter, url: str) -> str:
    try:
        parse_endpoint_url(url)
    except InvalidEndpointUrl as fault:
        raise click.BadParameter(str(fault)) from None
    return url


@click.command()
@click.option(
    "--forward-to",
    "url",
    required=True,
    callback=_check_url,
    metavar="URL",
    help="Where each event is posted.",
)
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice([str(name) for name in EventName]),
    help="Only these; may be repeated.  [default: all]",
)
@click.option(
    "--secret",
    envvar="HOLDFAST_SECRET",
    callback=utf8_only,
    help="Sign with this secret.  [default: HOLDFAST_SECRET, or a new one, which is printed]",
)
@shared_options
def listen(url: str, events: tuple[str, ...], secret: str | None, data: Path | None, as_json: bool) -> None:
    """Post every event from now on to a URL of your own machine, signed, until Ctrl-C.

    For development: an event is posted once, whatever comes of it, and no log is kept. What is for
    production is an endpoint.
    """
    settings = read_settings(data)
    text = secret or generate_secret()
    # Only a generated secret is printed.
    printed = None if secret else text

    async def work(database: Database) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        async with open_forwarder(database, settings, url, text, events) as forwarder:
            await forwarder.start()
            _print_start(url, printed, as_json)
            while not stop.is_set():
                if not await forwarder.run_once(partial(_print_attempt, as_json=as_json)):
                    await _pause(stop)

    with_database(data, work)


async def _pause(stop: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stop.wait(), POLL_SECONDS)
    except TimeoutError:
        return


def _print_start(url: str, secret: str | None, as_json: bool) -> None:
    if as_json:
        print_json({"listening": True, "url": url, "secret": secret})
        return
    click.echo(f"Events go to {url} from now on; Ctrl-C stops it.")
    click.echo(f"They are signed with {secret or 'the secret that was given.'}")


def _print_attempt(forwarded: Forwarded, as_json: bool) -> None:
    item, attempted = forwarded
    if as_json:
        print_json(_document(forwarded))
        return
    outcome = attempted.cause or f"The receiver answered {attempted.status_code}."
    click.echo(f"{item.created_at:%H:%M:%S}  {item.type:<16}  {item.unit_code:<12}  {outcome}")


def _document(forwarded: Forwarded) -> dict[str, Any]:
    item, attempted = forwarded
    return {
        "id": str(item.id),
        "event": str(item.type),
        "unitCode": item.unit_code,
        "statusCode": attempted.status_code,
        "cause": optional_text(attempted.cause),
        "durationMs": round(attempted.duration_ms, 3),
    }
