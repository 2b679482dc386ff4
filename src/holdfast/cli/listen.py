"""holdfast listen"""

import asyncio
import signal
import time
from contextlib import suppress
from ipaddress import ip_network
from uuid import uuid4

import click
import msgspec

from holdfast.cli.database import with_database
from holdfast.cli.output import Output, check_utf8, choices_option, read_settings, shared_options
from holdfast.domain.delivery import AttemptResult
from holdfast.domain.endpoint import generate_secret
from holdfast.domain.endpoint_url import InvalidEndpointUrl, parse_endpoint_url
from holdfast.domain.event import EventName
from holdfast.operations.events import EventFeed, FeedItem, event_document
from holdfast.storage.database import Database
from holdfast.webhooks.attempt import Post, Secret
from holdfast.wiring import open_sender

POLL_SECONDS = 0.3
ITEMS_AT_ONCE = 100
# The user of the command chooses the URL, so any address is allowed.
_EVERYWHERE = (ip_network("0.0.0.0/0"), ip_network("::/0"))


def _check_url(_: click.Context, __: click.Parameter, url: str) -> str:
    try:
        parse_endpoint_url(url)
    except InvalidEndpointUrl as error:
        raise click.BadParameter(str(error)) from None
    return url


@click.command()
@click.option(
    "--forward-to",
    "url",
    required=True,
    callback=_check_url,
    metavar="URL",
    help="The URL that gets each event.",
)
@choices_option("--event", "events", EventName, "Only these; may be repeated.  [default: all]")
@click.option(
    "--secret",
    envvar="HOLDFAST_SECRET",
    callback=check_utf8,
    help="Sign with this secret.  [default: HOLDFAST_SECRET, or a new one, which is printed]",
)
@shared_options
def listen(url: str, events: tuple[str, ...], secret: str | None, as_json: bool) -> None:
    """Post each new event to a URL, signed, until Ctrl-C.

    For development: each event is posted once, without retries and without a log. For production,
    register an endpoint.
    """
    # Only a generated secret is printed.
    new_secret = None if secret else generate_secret()
    start = Output(
        {"listening": True, "url": url, "secret": new_secret},
        f"Events go to {url} from now on; Ctrl-C stops it.\n"
        f"They are signed with {new_secret or 'the secret that was given.'}",
    )
    signing_secret = Secret(uuid4(), new_secret or secret or "")

    async def read_secret() -> Secret:
        return signing_secret

    async def forward_events(database: Database) -> None:
        stop = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        feed = EventFeed(database)
        _, position = await feed.span(None)
        async with open_sender(
            read_settings().model_copy(update={"allowed_networks": _EVERYWHERE})
        ) as sender:
            start.print(as_json)
            while not stop.is_set():
                page = await feed.read(position, ITEMS_AT_ONCE, None)
                for item in page.items:
                    if not events or item.type in events:
                        body = msgspec.json.encode(event_document(item, item.project_slug))
                        post = Post(url, item.type, item.id, body, read_secret, time.time)
                        _print_attempt(item, await sender.send(post), as_json)
                position = page.next_position
                if len(page.items) < ITEMS_AT_ONCE:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(stop.wait(), POLL_SECONDS)

    with_database(forward_events)


def _print_attempt(event: FeedItem, result: AttemptResult, as_json: bool) -> None:
    document = {
        "id": str(event.id),
        "event": str(event.type),
        "unitCode": event.unit_code,
        "statusCode": result.status_code,
        "cause": None if result.cause is None else str(result.cause),
        "durationMs": round(result.duration_ms, 3),
    }
    outcome = result.cause or f"The receiver answered {result.status_code}."
    text = f"{event.created_at:%H:%M:%S}  {event.type:<16}  {event.unit_code:<12}  {outcome}"
    Output(document, text).print(as_json)
