"""The `holdfast` command. A subcommand's module is imported only when it is run."""

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from holdfast import __version__
from holdfast.cli.output import CommandError, print_json
from holdfast.domain.errors import DomainError
from holdfast.server.sockets import StartError
from holdfast.settings import WrongSetting
from holdfast.storage.errors import BackupError, EmbeddedPostgresError, SchemaError, WrongDatabase

_SUBCOMMANDS = {
    "serve": "Run everything: web, background work, and the embedded database unless another is set.",
    "work": "Run the background work only; any number, on any machine.",
    "migrate": "Migrate the database's schema.",
    "project": "Add and list projects.",
    "key": "Add, list and revoke API keys.",
    "staff": "Add, list, disable and reset the people of the back office.",
    "endpoint": "Register, test and change the URLs that receive events.",
    "delivery": "List deliveries, show their attempts, and send them again.",
    "backup": "Write the database and its encryption keys into a file.",
    "restore": "Restore a backup into an empty database.",
    "advance": "Issue only new ids after a recovery that lost changes.",
    "verify": "Check the signature of a captured delivery.",
    "listen": "For development: post each new event to a URL, signed.",
    "simulate": "Simulate buyers, staff, payments and an ERP against a server.",
}
# Commands whose module has another name.
_MODULES = {
    "migrate": "database",
    "advance": "database",
    "work": "serve",
    "key": "project",
    "restore": "backup",
}
_OPERATOR_ERRORS = (BackupError, EmbeddedPostgresError, DomainError, SchemaError, StartError, WrongSetting)


class Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUBCOMMANDS:
            return None
        module = importlib.import_module(f"holdfast.cli.{_MODULES.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_SUBCOMMANDS.items()))

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with _reporting(as_json="--json" in args):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> object:
        with _reporting(as_json="--json" in ctx.args):
            return super().invoke(ctx)


@contextmanager
def _reporting(as_json: bool) -> Iterator[None]:
    """Print errors and end the command."""
    try:
        yield
    except (click.ClickException, KeyboardInterrupt, *_OPERATOR_ERRORS) as error:
        logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a connection that was cut off says more
        cause = error.__cause__
        # Such as a failed connection.
        is_external = isinstance(cause, OSError) and str(cause)
        sentence = f"{error} ({cause})" if is_external else str(error) or "Stopped."
        shown = error if isinstance(error, click.ClickException) else CommandError(sentence)
        if as_json:
            print_json({"error": shown.format_message()}, to_stderr=True)
        else:
            shown.show()
        raise click.exceptions.Exit(2 if isinstance(error, WrongDatabase) else shown.exit_code) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="holdfast")
def main() -> None:
    """The inventory behind property sales.

    Settings come from the environment (HOLDFAST_DATABASE_URL, HOLDFAST_DATA_DIR, ...).
    """
