"""holdfast simulate"""

import asyncio
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.live import Live

from holdfast.cli.database import with_database
from holdfast.cli.output import CommandError, Output, check_utf8, read_settings, shared_options
from holdfast.domain.api_key import Scope
from holdfast.operations import api_keys
from holdfast.operations.health import load_public_url
from holdfast.simulation.client import ApiClient, InvalidKey, SimulationError, check_server, open_http_client
from holdfast.simulation.report import LinePrinter, format_totals, render_table
from holdfast.simulation.runner import Simulation, SimulationOptions
from holdfast.simulation.state import find_project

KEY_NAME = "holdfast simulate"
_SCOPES = (Scope.INTEGRATION, Scope.PAYMENTS, Scope.BACKOFFICE)
_SECONDS_PER_DAY = 86_400
_SPARE_SECONDS = 600
_MAX_BUYERS = 1000
_FRAMES_PER_SECOND = 8
_DEFAULT_URL = "http://127.0.0.1:8000"


def _check_url(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    with suppress(ValueError):
        if url is None or (urlsplit(url).scheme in ("http", "https") and urlsplit(url).hostname):
            return url
    raise click.BadParameter("it must be like http://127.0.0.1:8000, with http:// or https:// and a host.")


def _check_key(_: click.Context, __: click.Parameter, key: str | None) -> str | None:
    if key is not None and not (key.isascii() and key.isprintable() and key.strip() == key):
        raise click.BadParameter("it is not a key.")
    return key


@click.command()
@click.option(
    "--buyers", default=20, show_default=True, type=click.IntRange(1, _MAX_BUYERS), help="Number of buyers."
)
@click.option("--url", callback=_check_url, help="The server.  [default: where `serve` last was]")
@click.option(
    "--project",
    callback=check_utf8,
    metavar="SLUG",
    help="The project.  [default: the first with enough for sale]",
)
@click.option(
    "--key",
    envvar="HOLDFAST_KEY",
    callback=_check_key,
    help="A key with the scopes integration and backoffice.  [default: HOLDFAST_KEY, or one of its own]",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Repeat the same buyers and plans.")
@click.option(
    "--pace",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.1, 100),
    metavar="FACTOR",
    help="Speed; 5 is five times as fast.",
)
@shared_options
def simulate(
    buyers: int,
    url: str | None,
    project: str | None,
    key: str | None,
    seed: int | None,
    pace: float,
    as_json: bool,
) -> None:
    """Simulate a busy morning: buyers, staff, a payment system and an ERP.

    It runs against any Holdfast server over HTTP. It holds and sells units, and the sales stay; a fifth of
    the units on sale stays available. Without --key it needs the server's database, named with --data or
    HOLDFAST_DATABASE_URL: it issues its own key there, and revokes it at the end.
    """
    options = SimulationOptions(buyers, secrets.randbelow(1_000_000) if seed is None else seed, pace)
    settings = read_settings()
    has_database = settings.database_url is not None or (settings.data_dir / "postgres").is_dir()
    # Where `serve` last was.
    address = url or (with_database(load_public_url) if has_database or key is None else _DEFAULT_URL)
    try:
        asyncio.run(check_server(address))
        with _usable_key(key, options) as usable_key:
            totals = asyncio.run(_simulate(address, usable_key, project, options, as_json))
    except SimulationError as error:
        raise CommandError(str(error)) from None
    Output(totals, "\n".join(format_totals(totals))).print(as_json)
    if totals["failure"] is not None:
        raise CommandError(totals["failure"])
    if totals["brokenPromises"]:
        raise SystemExit(1)


@contextmanager
def _usable_key(key: str | None, options: SimulationOptions) -> Iterator[str]:
    """Yield the given key, or one that is revoked after the simulation, however that ends."""
    if key is not None:
        yield key
        return
    # If the command is killed, its key expires soon.
    days = (options.max_seconds + _SPARE_SECONDS) / _SECONDS_PER_DAY
    new_key = api_keys.NewApiKey(KEY_NAME, _SCOPES, None, days)
    issued = with_database(lambda database: api_keys.issue(database, new_key))
    try:
        yield issued.text
    except InvalidKey as error:
        hint = "The server uses another database than this command. Pass one of its keys with --key."
        raise SimulationError(f"{error} {hint}") from None
    finally:
        # A second Ctrl-C must not leave the key valid.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            with_database(lambda database: api_keys.revoke(database, issued.key.id))
        finally:
            signal.signal(signal.SIGINT, handler)


async def _simulate(
    url: str, key: str, slug: str | None, options: SimulationOptions, as_json: bool
) -> dict[str, Any]:
    async with open_http_client(url) as http:
        client = ApiClient(http, key)
        project = await find_project(client, slug)
        simulation = Simulation(client, project, options)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, simulation.stop)
        if as_json:
            return await simulation.run()
        click.echo(
            f"{options.buyers} buyers come to {project.latin_name}, where {project.available} units are"
            f" available (seed {options.seed})."
        )
        console = Console()
        return await (
            _run_with_table(simulation, console) if console.is_terminal else _run_with_lines(simulation)
        )


async def _run_with_lines(simulation: Simulation) -> dict[str, Any]:
    printer = LinePrinter(click.echo)
    simulation.state.on_entry = printer
    try:
        return await simulation.run()
    finally:
        printer.close()


async def _run_with_table(simulation: Simulation, console: Console) -> dict[str, Any]:
    with Live(console=console, auto_refresh=False, transient=True) as live:
        drawing = asyncio.create_task(_draw(live, simulation))
        try:
            return await simulation.run()
        finally:
            drawing.cancel()


async def _draw(live: Live, simulation: Simulation) -> None:
    """Draw between the steps of the simulation: a thread would read what is being written."""
    while True:
        live.update(render_table(simulation.state, live.console.height), refresh=True)
        await asyncio.sleep(1 / _FRAMES_PER_SECOND)
