"""What people type behind a command."""

from collections.abc import Iterable

import click


def utf8_only(_: click.Context, __: click.Parameter, typed: Iterable[str] | None) -> Iterable[str] | None:
    """Bytes that are not UTF-8 arrive as lone surrogates, which can be neither stored nor signed nor sent.

    For one text and for an option that may be repeated.
    """
    try:
        "".join(typed or ()).encode()
    except UnicodeEncodeError:
        raise click.BadParameter("it is not UTF-8.") from None
    return typed


limited_to_projects = click.option(
    "--project",
    "projects",
    multiple=True,
    callback=utf8_only,
    metavar="SLUG",
    help="Limit it to projects; may be repeated.",
)
