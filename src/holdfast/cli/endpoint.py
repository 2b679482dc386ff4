"""holdfast endpoint"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import click

from holdfast.cli.database import with_database
from holdfast.cli.output import (
    format_time,
    limited_to_projects,
    print_json,
    print_result,
    print_table,
    read_settings,
    shared_options,
)
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
from holdfast.operations.endpoints import Endpoints
from holdfast.operations.health import is_demo
from holdfast.operations.staff import Accounts
from holdfast.operations.webhook_documents import (
    delivery_with_attempts_document,
    endpoint_document,
    endpoint_with_secret_document,
)
from holdfast.settings import LOOPBACK
from holdfast.storage.database import Database
from holdfast.storage.secrets import SecretBox, load_encryption_keys
from holdfast.wiring import open_endpoints

T = TypeVar("T")

_AT_ONCE = 1000
_with_id = click.argument("endpoint_id", metavar="ID", type=click.UUID)


@click.group()
def endpoint() -> None:
    """Register URLs to receive events, try them, and give them new secrets."""


def _short_enough(_: click.Context, __: click.Parameter, text: str) -> str:
    if len(text) > LONGEST_DESCRIPTION or not text.isprintable():
        raise click.BadParameter(
            f"a description is printable text of at most {LONGEST_DESCRIPTION} characters."
        )
    return text


@endpoint.command()
@click.argument("url")
@click.option(
    "--event",
    "events",
    multiple=True,
    type=click.Choice([str(name) for name in EventName]),
    help="What it receives; may be repeated.  [default: all]",
)
@limited_to_projects
@click.option("--description", default="", callback=_short_enough, help="What it is for.")
@click.option("--ordered", is_flag=True, help="A unit's later events wait until the earlier one ended.")
@click.option("--paused", is_flag=True, help="Keep what is for it, and send nothing yet.")
@click.option(
    "--max-in-flight",
    default=DEFAULT_IN_FLIGHT,
    show_default=True,
    type=click.IntRange(MIN_IN_FLIGHT, MAX_IN_FLIGHT),
    help="Attempts at the same time.",
)
@shared_options
def add(
    url: str,
    events: tuple[str, ...],
    projects: tuple[str, ...],
    description: str,
    ordered: bool,
    paused: bool,
    max_in_flight: int,
    data: Path | None,
    as_json: bool,
) -> None:
    """Register URL and print its signing secret, this once."""
    config = EndpointConfig(
        url=url,
        description=description,
        events=tuple(name for name in EventName if not events or name in events),
        project_slugs=tuple(dict.fromkeys(projects)) or None,
        paused=paused,
        ordered=ordered,
        max_in_flight=max_in_flight,
    )
    issued = _with_endpoints(data, lambda own: own.add(config, COMMAND))
    _print_secret(issued, as_json, f"Registered {url} as {issued.endpoint.id}.")


@endpoint.command("list")
@shared_options
def list_(data: Path | None, as_json: bool) -> None:
    """List the endpoints, without their secrets."""
    found = _with_endpoints(data, _all)
    if as_json:
        print_json({"endpoints": [endpoint_document(one) for one in found], "nextCursor": None})
        return
    headings = ("URL", "EVENTS", "PROJECTS", "STATE", "NOTHING ARRIVED SINCE", "ID")
    print_table(headings, [_row(one) for one in found], if_empty="There are no endpoints yet.")


@endpoint.command()
@_with_id
@shared_options
def rotate(endpoint_id: UUID, data: Path | None, as_json: bool) -> None:
    """Give it a new secret, which signs from now on, and print it, this once."""
    issued = _with_endpoints(data, lambda own: own.rotate(endpoint_id, COMMAND))
    _print_secret(
        issued, as_json, f"{issued.endpoint.config.url} has a new secret; the old one signs nothing more."
    )


@endpoint.command()
@_with_id
@shared_options
def ping(endpoint_id: UUID, data: Path | None, as_json: bool) -> None:
    """Send it a ping, which is signed, tried again and logged as every event."""
    made = _with_endpoints(data, lambda own: own.ping(endpoint_id, COMMAND))
    print_result(
        as_json,
        delivery_with_attempts_document(made, ()),
        f"A ping is to be sent; see what became of it: holdfast delivery show {made.id}",
    )


@endpoint.command()
@_with_id
@shared_options
def pause(endpoint_id: UUID, data: Path | None, as_json: bool) -> None:
    """Send nothing until it is resumed; what there is to send is kept."""
    _print_changed(_changed(data, endpoint_id, paused=True), as_json, "is paused; what is for it is kept.")


@endpoint.command()
@_with_id
@shared_options
def resume(endpoint_id: UUID, data: Path | None, as_json: bool) -> None:
    """Send again, beginning with what was kept."""
    _print_changed(_changed(data, endpoint_id, paused=False), as_json, "receives events.")


@endpoint.command()
@_with_id
@shared_options
def remove(endpoint_id: UUID, data: Path | None, as_json: bool) -> None:
    """Send nothing more to it, and cancel what is queued."""
    found = _with_endpoints(data, lambda own: _remove(own, endpoint_id))
    print_result(
        as_json,
        {"id": str(found.id), "url": found.config.url, "removed": True},
        f"Removed the endpoint {found.config.url}.",
    )


@endpoint.command()
@shared_options
def reencrypt(data: Path | None, as_json: bool) -> None:
    """Encrypt all secrets with the first of HOLDFAST_ENCRYPTION_KEYS, so that the others can be dropped.

    Those of endpoints, and the second factors of staff.
    """
    box = SecretBox(load_encryption_keys(read_settings(data)))
    count = _with_endpoints(data, lambda own: own.seal_anew())
    count += with_database(data, lambda database: Accounts(database, box).reencrypt())
    print_result(as_json, {"count": count}, f"Secrets encrypted with the first key: {count}.")


def _with_endpoints(data: Path | None, work: Callable[[Endpoints], Awaitable[T]]) -> T:
    settings = read_settings(data)

    async def use(database: Database) -> T:
        # Where the demo is served, loopback addresses are allowed, as its processes do.
        networks = (*settings.allowed_networks, *(LOOPBACK if await is_demo(database) else ()))
        own_settings = settings.model_copy(update={"allowed_networks": networks})
        async with open_endpoints(database, own_settings) as own:
            return await work(own)

    return with_database(data, use)


async def _all(own: Endpoints) -> list[Endpoint]:
    found: list[Endpoint] = []
    while True:
        after = (found[-1].created_at, found[-1].id) if found else None
        page = await own.page(after, None, _AT_ONCE)
        found += page[:_AT_ONCE]
        if len(page) <= _AT_ONCE:
            return found


async def _remove(own: Endpoints, endpoint_id: UUID) -> Endpoint:
    found = await own.find(endpoint_id)
    await own.remove(endpoint_id, COMMAND)
    return found


def _changed(data: Path | None, endpoint_id: UUID, **changes: Any) -> Endpoint:
    return _with_endpoints(data, lambda own: own.change(endpoint_id, changes, COMMAND))


def _print_changed(changed: Endpoint, as_json: bool, what: str) -> None:
    print_result(as_json, endpoint_document(changed), f"The endpoint {changed.config.url} {what}")


def _print_secret(issued: IssuedSecret, as_json: bool, what: str) -> None:
    if as_json:
        print_json(endpoint_with_secret_document(issued))
        return
    click.echo(issued.text)
    click.echo(f"{what} This is the only time that its secret is shown.", err=True)


def _row(one: Endpoint) -> tuple[str, ...]:
    config, trouble = one.config, one.failure
    events = "all" if len(config.events) == len(EventName) else ", ".join(config.events)
    projects = "all" if config.project_slugs is None else ", ".join(config.project_slugs)
    silent = "-" if trouble is None else f"{format_time(trouble.since)}: {trouble.cause}"
    return config.url, events, projects, one.state, silent, str(one.id)
