"""holdfast endpoint"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any
from uuid import UUID

import click

from holdfast.cli import output
from holdfast.cli.database import database_command
from holdfast.domain.audit import COMMAND
from holdfast.domain.endpoint import (
    DEFAULT_IN_FLIGHT,
    LONGEST_DESCRIPTION,
    MAX_IN_FLIGHT,
    MIN_IN_FLIGHT,
    Endpoint,
    EndpointConfig,
    IssuedSecret,
)
from holdfast.domain.event import EventName
from holdfast.operations import delivery_documents as documents
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.staff import Accounts
from holdfast.settings import LOOPBACK
from holdfast.storage import schema
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox, load_encryption_keys
from holdfast.wiring import open_endpoints

_PAGE = 1000
_id = click.argument("endpoint_id", metavar="ID", type=click.UUID)


@click.group()
def endpoint() -> None:
    """Register, test and change the URLs that receive events."""


def _endpoint_command(work: Callable[..., Awaitable[output.Output]]) -> Callable[..., None]:
    """Make a command of a coroutine function that takes the endpoints and returns what to print."""

    @database_command
    @wraps(work)
    async def command(database: Database, **arguments: Any) -> output.Output:
        settings = output.read_settings()
        # Where the demo is served, loopback addresses are allowed, as its processes do.
        networks = (*settings.allowed_networks, *(LOOPBACK if await database.read(schema.is_demo) else ()))
        own_settings = settings.model_copy(update={"allowed_networks": networks})
        async with open_endpoints(database, own_settings) as endpoints:
            return await work(endpoints, **arguments)

    return command


def _check_description(_: click.Context, __: click.Parameter, text: str) -> str:
    if len(text) > LONGEST_DESCRIPTION or not text.isprintable():
        raise click.BadParameter(
            f"a description is printable text of at most {LONGEST_DESCRIPTION} characters."
        )
    return text


@endpoint.command()
@click.argument("url")
@output.choices_option("--event", "events", EventName, "What it receives; may be repeated.  [default: all]")
@output.projects_option
@click.option("--description", default="", callback=_check_description, help="A note for yourself.")
@click.option("--ordered", is_flag=True, help="Later events of a unit wait for earlier ones.")
@click.option("--paused", is_flag=True, help="Keep deliveries and send nothing yet.")
@click.option(
    "--max-in-flight",
    default=DEFAULT_IN_FLIGHT,
    show_default=True,
    type=click.IntRange(MIN_IN_FLIGHT, MAX_IN_FLIGHT),
    help="Attempts in flight at the same time.",
)
@_endpoint_command
async def add(
    endpoints: Endpoints, events: tuple[str, ...], projects: tuple[str, ...], **options: Any
) -> output.Output:
    """Register URL and print its signing secret, once."""
    config = EndpointConfig(
        events=tuple(name for name in EventName if not events or name in events),
        project_slugs=tuple(dict.fromkeys(projects)) or None,
        **options,
    )
    issued = await endpoints.add(config, COMMAND)
    return _secret(issued, f"Registered {config.url} as {issued.endpoint.id}.")


@endpoint.command("list")
@_endpoint_command
async def list_(endpoints: Endpoints) -> output.Output:
    """List the endpoints, without their secrets."""
    found: list[Endpoint] = []
    while page := await endpoints.page((found[-1].created_at, found[-1].id) if found else None, None, _PAGE):
        found += page
    headings = ("URL", "EVENTS", "PROJECTS", "STATE", "FAILING SINCE", "ID")
    rows = [_row(each) for each in found]
    text = output.format_table(headings, rows, if_empty="There are no endpoints yet.")
    listed = [documents.endpoint_document(each) for each in found]
    return output.Output({"endpoints": listed, "nextCursor": None}, text)


@endpoint.command()
@_id
@_endpoint_command
async def rotate(endpoints: Endpoints, endpoint_id: UUID) -> output.Output:
    """Create a new secret, which signs from now on, and print it once."""
    issued = await endpoints.rotate(endpoint_id, COMMAND)
    return _secret(issued, f"{issued.endpoint.config.url} has a new secret; the old one is no longer used.")


@endpoint.command()
@_id
@_endpoint_command
async def ping(endpoints: Endpoints, endpoint_id: UUID) -> output.Output:
    """Send a ping, which is signed, retried and logged like every event."""
    delivery = await endpoints.ping(endpoint_id, COMMAND)
    text = f"A ping will be sent. To see the result: holdfast delivery show {delivery.id}"
    return output.Output(documents.delivery_with_attempts_document(delivery, ()), text)


@endpoint.command()
@_id
@_endpoint_command
async def pause(endpoints: Endpoints, endpoint_id: UUID) -> output.Output:
    """Send nothing until you resume the endpoint. Deliveries are kept."""
    changed = await endpoints.change(endpoint_id, {"paused": True}, COMMAND)
    text = f"The endpoint {changed.config.url} is paused; its events are kept."
    return output.Output(documents.endpoint_document(changed), text)


@endpoint.command()
@_id
@_endpoint_command
async def resume(endpoints: Endpoints, endpoint_id: UUID) -> output.Output:
    """Send deliveries again, including those that were kept."""
    changed = await endpoints.change(endpoint_id, {"paused": False}, COMMAND)
    text = f"The endpoint {changed.config.url} receives events."
    return output.Output(documents.endpoint_document(changed), text)


@endpoint.command()
@_id
@_endpoint_command
async def remove(endpoints: Endpoints, endpoint_id: UUID) -> output.Output:
    """Remove the endpoint and cancel its queued deliveries."""
    url = (await endpoints.find(endpoint_id)).config.url
    await endpoints.remove(endpoint_id, COMMAND)
    document = {"id": str(endpoint_id), "url": url, "removed": True}
    return output.Output(document, f"Removed the endpoint {url}.")


@endpoint.command()
@database_command
async def reencrypt(database: Database) -> output.Output:
    """Encrypt all secrets with the first of HOLDFAST_ENCRYPTION_KEYS, so that you can remove the others.

    These are the signing secrets of endpoints and the second factors of staff.
    """
    settings = output.read_settings()
    async with open_endpoints(database, settings) as endpoints:
        count = await endpoints.reseal_secrets()
    count += await Accounts(database, SecretBox(load_encryption_keys(settings))).reencrypt()
    return output.Output({"count": count}, f"Secrets encrypted with the first key: {count}.")


def _secret(issued: IssuedSecret, sentence: str) -> output.Output:
    note = f"{sentence} Its secret is shown only this once."
    return output.Output(documents.endpoint_with_secret_document(issued), issued.text, note)


def _row(endpoint: Endpoint) -> tuple[str, ...]:
    config, failure = endpoint.config, endpoint.failure
    events = "all" if len(config.events) == len(EventName) else ", ".join(config.events)
    projects = "all" if config.project_slugs is None else ", ".join(config.project_slugs)
    failing = "-" if failure is None else f"{output.format_time(failure.since)}: {failure.cause}"
    return config.url, events, projects, endpoint.state, failing, str(endpoint.id)
