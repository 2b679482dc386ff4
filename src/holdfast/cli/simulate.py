"""holdfast simulate"""

import asyncio
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit

import click
from rich.console import Console
from rich.live import Live

from holdfast.cli.database import read_settings, with_database
from holdfast.cli.output import print_json, shared_options, utf8_only
from holdfast.domain.api_key import IssuedKey, Scope
from holdfast.operations import api_keys
from holdfast.operations.health import load_public_url
from holdfast.simulation.calling import Caller, open_client
from holdfast.simulation.ground import find_ground, refuse_if_away
from holdfast.simulation.lines import Lines
from holdfast.simulation.play import Play, SimulationOptions
from holdfast.simulation.refused import KeyRefused, SimulationRefused
from holdfast.simulation.table import drawn
from holdfast.simulation.totals import Totals
from holdfast.storage.database import Database

KEY_NAME = "holdfast simulate"
_SCOPES = (Scope.INTEGRATION, Scope.PAYMENTS, Scope.BACKOFFICE)
_SECONDS_A_DAY = 86_400
_SPARE_SECONDS = 600
_MOST_BUYERS = 1000
_FRAMES_A_SECOND = 8


def _sound_url(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    if url is not None and (urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname):
        raise click.BadParameter("it must begin with http:// or https:// and name a host.")
    return url


def _sound_key(_: click.Context, __: click.Parameter, key: str | None) -> str | None:
    if key is not None and not (key.isascii() and key.isprintable() and key.strip() == key):
        raise click.BadParameter("it is not a key.")
    return key


@click.command()
@click.option(
    "--buyers", default=20, show_default=True, type=click.IntRange(1, _MOST_BUYERS), help="How many come."
)
@click.option("--url", callback=_sound_url, help="The Holdfast.  [default: where `serve` last was]")
@click.option(
    "--project",
    callback=utf8_only,
    metavar="SLUG",
    help="Where they buy.  [default: the first with enough for sale]",
)
@click.option(
    "--key",
    envvar="HOLDFAST_KEY",
    callback=_sound_key,
    help="A key with the scopes integration and backoffice.  [default: HOLDFAST_KEY, or one of its own]",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="The same buyers, with the same plans.")
@click.option(
    "--pace",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.1, 100),
    metavar="FACTOR",
    help="5 is five times as fast.",
)
@shared_options
def simulate(
    buyers: int,
    url: str | None,
    project: str | None,
    key: str | None,
    seed: int | None,
    pace: float,
    data: Path | None,
    as_json: bool,
) -> None:
    """Play a busy morning: buyers, staff, a payment system and an ERP, until they are through.

    It plays against any Holdfast over HTTP, holds units and sells them for good; a fifth of what is on
    sale is left. Without --key it issues one of its own in the database that it finds, and revokes it at
    the end.
    """
    wishes = SimulationOptions(buyers, secrets.randbelow(1_000_000) if seed is None else seed, pace)
    try:
        address = url or _where_serve_was(data, key)
        asyncio.run(_refuse_if_away(address))
        with _key_for(key, data, wishes) as opened:
            totals = asyncio.run(_play(address, opened, project, wishes, as_json))
    except SimulationRefused as refusal:
        _refuse(str(refusal))
    _report(totals, as_json)


def _where_serve_was(data: Path | None, key: str | None) -> str:
    """Asking the database would make one where there is none."""
    if not _has_database(data):
        if key is None:
            _refuse_for_want_of_a_key(data)
        return "http://127.0.0.1:8000"
    return with_database(data, load_public_url)


def _has_database(data: Path | None) -> bool:
    settings = read_settings(data)
    return settings.database_url is not None or (settings.data_dir / "postgres").is_dir()


def _refuse_for_want_of_a_key(data: Path | None) -> NoReturn:
    where = read_settings(data).data_dir
    raise SimulationRefused(
        f"There is no database in {where} to issue a key in. Name its folder by --data, or give a --key."
    )


async def _refuse_if_away(url: str) -> None:
    async with open_client(url) as http:
        await refuse_if_away(http)


@contextmanager
def _key_for(key: str | None, data: Path | None, wishes: SimulationOptions) -> Iterator[str]:
    """The key that was given, or one that is revoked after the play, however that ends."""
    if key is not None:
        yield key
        return
    if not _has_database(data):
        _refuse_for_want_of_a_key(data)
    issued = with_database(data, partial(_issue, days=_days(wishes)))
    try:
        yield issued.text
    except KeyRefused as refusal:
        elsewhere = (
            "The key was issued in another database than that Holdfast's; give one of its own by --key."
        )
        raise SimulationRefused(f"{refusal} {elsewhere}") from None
    finally:
        _revoke(issued, data)


async def _issue(database: Database, days: float) -> IssuedKey:
    return await api_keys.issue_key(database, KEY_NAME, _SCOPES, (), days)


def _days(wishes: SimulationOptions) -> float:
    """Should this be killed, its key does not live much longer."""
    return (wishes.at_most_seconds + _SPARE_SECONDS) / _SECONDS_A_DAY


def _revoke(issued: IssuedKey, data: Path | None) -> None:
    """To the end, also when Ctrl-C is pressed once more."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with_database(data, lambda database: api_keys.revoke_key(database, issued.key.id))
    finally:
        signal.signal(signal.SIGINT, before)


async def _play(url: str, key: str, project: str | None, wishes: SimulationOptions, as_json: bool) -> Totals:
    async with open_client(url) as http:
        caller = Caller(http, key)
        play = Play(caller, await find_ground(caller, project), wishes)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, play.stop)
        if as_json:
            return await play.run()
        return await (_on_a_terminal if Console().is_terminal else _line_by_line)(play)


async def _line_by_line(play: Play) -> Totals:
    click.echo(_opening(play))
    lines = Lines(click.echo)
    play.story.listen(lines)
    try:
        return await play.run()
    finally:
        lines.close()


async def _on_a_terminal(play: Play) -> Totals:
    console = Console()
    console.print(_opening(play), highlight=False, markup=False)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        drawing = asyncio.create_task(_draw(live, play))
        try:
            return await play.run()
        finally:
            drawing.cancel()


async def _draw(live: Live, play: Play) -> None:
    """Between the steps of the play: a thread of its own would look at what is being written."""
    while True:
        live.update(drawn(play, live.console.height), refresh=True)
        await asyncio.sleep(1 / _FRAMES_A_SECOND)


def _opening(play: Play) -> str:
    wishes, ground = play.wishes, play.ground
    return (
        f"{wishes.buyers} buyers come to {ground.shown}, where {ground.available} units are available"
        f" (seed {wishes.seed})."
    )


def _report(totals: Totals, as_json: bool) -> None:
    if as_json:
        print_json(totals.document())
    else:
        click.echo("\n".join(totals.sentences()))
    if totals.failure is not None:
        _refuse(totals.failure)
    if not totals.is_sound:
        raise SystemExit(1)


def _refuse(sentence: str) -> NoReturn:
    click.echo(f"holdfast: {sentence}", err=True)
    raise SystemExit(1)
