"""holdfast delivery"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

import click
from click.core import ParameterSource

from holdfast.cli.database import database_command
from holdfast.cli.output import Output, format_table
from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import Attempt, Delivery, DeliveryFilter, DeliveryStatus
from holdfast.domain.event import PING, EventName
from holdfast.domain.unit import code_fault
from holdfast.operations.deliveries import END, NO_CURSOR, START, Deliveries
from holdfast.operations.delivery_documents import delivery_document, delivery_with_attempts_document
from holdfast.operations.events import EventFeed
from holdfast.storage.database import Database
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor

_RESPONSE_BYTES = 300
_MAX_LIMIT = 10_000
_id = click.argument("delivery_id", metavar="ID", type=click.UUID)


@click.group()
def delivery() -> None:
    """List deliveries, show their attempts, and send them again."""


def _check_code(_: click.Context, __: click.Parameter, code: str | None) -> str | None:
    fault = None if code is None else code_fault(code)
    if fault is not None:
        raise click.BadParameter(str(fault.message))
    return code


def _parse_cursor(_: click.Context, __: click.Parameter, cursor: str | None) -> tuple[datetime, UUID]:
    try:
        return NO_CURSOR if cursor is None else TIME_AND_ID_CURSOR.decode(cursor)
    except (ValueError, OverflowError):
        raise click.BadParameter("this is not a valid cursor.") from None


@delivery.command("list")
@click.option("--endpoint", "endpoint_id", type=click.UUID, metavar="ID", help="Only to this endpoint.")
@click.option("--event", type=click.Choice([*map(str, EventName), PING]), help="Only this event.")
@click.option("--unit-code", callback=_check_code, metavar="CODE", help="Only units with this code.")
@click.option(
    "--status", type=click.Choice([str(status) for status in DeliveryStatus]), help="Only this status."
)
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1, _MAX_LIMIT), help="Number of deliveries."
)
@click.option("--cursor", "before", callback=_parse_cursor, metavar="CURSOR", help="A page's nextCursor.")
@database_command
async def list_(
    database: Database,
    endpoint_id: UUID | None,
    event: str | None,
    unit_code: str | None,
    status: str | None,
    limit: int,
    before: tuple[datetime, UUID],
) -> Output:
    """List deliveries, newest first."""
    filters = DeliveryFilter(
        since=START,
        until=END,
        events=None if event is None else (event,),
        unit_code=unit_code,
        status=None if status is None else DeliveryStatus(status),
    )
    page = await _deliveries(database).page(endpoint_id, before, filters, limit)
    listed, cursor = page[:limit], creation_cursor(page[limit - 1]) if len(page) > limit else None
    headings = ("CREATED", "EVENT", "UNIT", "STATUS", "ATTEMPTS", "LAST RESPONSE", "ID")
    return Output(
        {"deliveries": [delivery_document(each) for each in listed], "nextCursor": cursor},
        format_table(headings, [_row(each) for each in listed], if_empty="There are no such deliveries."),
        "" if cursor is None else f"There are more: {_next_page_command(cursor)}",
    )


@delivery.command()
@_id
@database_command
async def show(database: Database, delivery_id: UUID) -> Output:
    """Show a delivery with all its attempts."""
    found, attempts = await _deliveries(database).find(delivery_id)
    lines = [*_delivery_lines(found)]
    for attempt in attempts:
        lines += ["", *_attempt_lines(attempt)]
    return Output(delivery_with_attempts_document(found, attempts), "\n".join(lines))


@delivery.command()
@_id
@database_command
async def resend(database: Database, delivery_id: UUID) -> Output:
    """Send a delivery again, with the same id and body, whatever its status."""
    resent, attempts = await _deliveries(database).resend(delivery_id, COMMAND)
    text = f"{resent.event} will be sent again. To see the result: holdfast delivery show {resent.id}"
    return Output(delivery_with_attempts_document(resent, attempts), text)


def _deliveries(database: Database) -> Deliveries:
    return Deliveries(database, EventFeed(database))


def _next_page_command(cursor: str) -> str:
    context = click.get_current_context()
    words, values = ["holdfast", "delivery", "list"], {**context.params, "data": context.obj}
    for option in context.command.params:
        name = str(option.name)
        if name != "before" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words += [option.opts[0], str(values[name])]
    return shlex.join([*words, "--cursor", cursor])


def _row(delivery: Delivery) -> tuple[str, ...]:
    created, unit_code = _format_time(delivery.created_at), delivery.unit_code or "-"
    response = str(delivery.last_cause or delivery.last_status_code or "-")
    attempts = str(delivery.attempts)
    return created, delivery.event, unit_code, delivery.status, attempts, response, str(delivery.id)


def _delivery_lines(delivery: Delivery) -> Iterator[str]:
    of_unit = "" if delivery.unit_code is None else f" of {delivery.unit_code}"
    status = f"{delivery.status} after {delivery.attempts} attempt" + ("s" if delivery.attempts != 1 else "")
    if delivery.next_attempt_at is not None:
        status += f"; next at {_format_time(delivery.next_attempt_at)}"
    if delivery.status is DeliveryStatus.CANCELLED:
        status += f": {delivery.reason}"
    yield f"{delivery.event}{of_unit}, {status}"
    yield f"  delivery  {delivery.id}"
    yield f"  endpoint  {delivery.endpoint_id}"
    yield f"  created   {_format_time(delivery.created_at)}"
    yield f"  body      {delivery.body}"


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    yield f"{attempt.number:>3}  {_format_time(attempt.started_at)}  {attempt.trigger}"
    yield f"     {attempt.cause or f'Delivered: the receiver answered {attempt.status_code}.'}"
    timings = {
        "name": attempt.dns_ms,
        "connect": attempt.connect_ms,
        "TLS": attempt.tls_ms,
        "first byte": attempt.first_byte_ms,
    }
    phases = ", ".join(
        f"{name} {_milliseconds(value)}" for name, value in timings.items() if value is not None
    )
    yield f"     took {_milliseconds(attempt.duration_ms)}" + (f" ({phases})" if phases else "")
    yield f"     POST {attempt.url}" + (f" at {attempt.address}" if attempt.address else "")
    if attempt.secret_id is not None:
        yield f"     signed with the secret {attempt.secret_id}"
    if attempt.response_body:
        text = attempt.response_body[:_RESPONSE_BYTES].decode(errors="replace")
        # On one line, without control characters.
        printable = "".join(character if character.isprintable() else " " for character in text)
        is_cut = len(attempt.response_body) > _RESPONSE_BYTES
        yield f"     response: {printable}" + ("…" if is_cut else "")


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _format_time(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03} UTC"
