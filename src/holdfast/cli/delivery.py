"""holdfast delivery"""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import click
from click.core import ParameterSource

from holdfast.cli.database import with_database
from holdfast.cli.output import print_json, print_result, print_table, shared_options
from holdfast.domain.audit import COMMAND
from holdfast.domain.delivery import Attempt, Delivery, DeliveryFilter, DeliveryStatus
from holdfast.domain.event import PING, EventName
from holdfast.domain.unit import code_fault
from holdfast.operations.deliveries import Deliveries
from holdfast.operations.events import EventFeed
from holdfast.operations.webhook_documents import delivery_document, delivery_with_attempts_document
from holdfast.web.pagination import TIME_AND_ID_CURSOR, creation_cursor

_SHOWN_OF_ANSWER = 300


def delivery_lines(delivery: Delivery, attempts: Sequence[Attempt]) -> Iterator[str]:
    of_unit = "" if delivery.unit_code is None else f" of {delivery.unit_code}"
    yield f"{delivery.event}{of_unit}, {_status_text(delivery)}"
    yield f"  delivery  {delivery.id}"
    yield f"  endpoint  {delivery.endpoint_id}"
    yield f"  created   {exact_time(delivery.created_at)}"
    yield f"  body      {delivery.body}"
    for attempt in attempts:
        yield ""
        yield from _attempt_lines(attempt)


def _status_text(delivery: Delivery) -> str:
    count = "1 attempt" if delivery.attempts == 1 else f"{delivery.attempts} attempts"
    match delivery.status:
        case DeliveryStatus.PENDING:
            assert delivery.next_attempt_at is not None
            return f"pending after {count}; next at {exact_time(delivery.next_attempt_at)}"
        case DeliveryStatus.CANCELLED:
            return f"cancelled after {count}: {delivery.reason}"
        case _:
            return f"{delivery.status} after {count}"


def _attempt_lines(attempt: Attempt) -> Iterator[str]:
    cause = attempt.cause or f"Delivered: the receiver answered {attempt.status_code}."
    yield f"{attempt.number:>3}  {exact_time(attempt.started_at)}  {attempt.trigger}"
    yield f"     {cause}"
    yield f"     {_duration_text(attempt)}"
    yield f"     POST {attempt.url}" + (f" at {attempt.address}" if attempt.address else "")
    if attempt.secret_id is not None:
        yield f"     signed with the secret {attempt.secret_id}"
    if attempt.response_body:
        yield f"     the answer: {_printable(attempt.response_body)}"


def _duration_text(attempt: Attempt) -> str:
    parts = (
        ("name", attempt.dns_ms),
        ("connect", attempt.connect_ms),
        ("TLS", attempt.tls_ms),
        ("first byte", attempt.first_byte_ms),
    )
    phases = ", ".join(f"{name} {_milliseconds(value)}" for name, value in parts if value is not None)
    return f"took {_milliseconds(attempt.duration_ms)}" + (f" ({phases})" if phases else "")


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _printable(body: bytes) -> str:
    """Write it on one line, without control characters."""
    text = body[:_SHOWN_OF_ANSWER].decode(errors="replace")
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain + ("…" if len(body) > _SHOWN_OF_ANSWER else "")


def exact_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"


T = TypeVar("T")

_AT_MOST = 10_000
_START, _END = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_AFTER_LAST = (_END, UUID(int=2**128 - 1))
_with_id = click.argument("delivery_id", metavar="ID", type=click.UUID)


@click.group()
def delivery() -> None:
    """List deliveries, look into them, and send them again."""


def _check_code(_: click.Context, __: click.Parameter, text: str | None) -> str | None:
    fault = None if text is None else code_fault(text)
    if fault is not None:
        raise click.BadParameter(str(fault.message))
    return text


def _parse_cursor(_: click.Context, __: click.Parameter, cursor: str | None) -> tuple[datetime, UUID]:
    if cursor is None:
        return _AFTER_LAST
    try:
        return TIME_AND_ID_CURSOR.decode(cursor)
    except (ValueError, OverflowError):
        raise click.BadParameter("this is not a cursor that a list has given.") from None


@delivery.command("list")
@click.option("--endpoint", "endpoint_id", type=click.UUID, metavar="ID", help="Of this endpoint only.")
@click.option("--event", type=click.Choice([*map(str, EventName), PING]), help="Of this event only.")
@click.option("--unit-code", callback=_check_code, metavar="CODE", help="Of units with this code only.")
@click.option(
    "--status", type=click.Choice([str(status) for status in DeliveryStatus]), help="Of this status only."
)
@click.option(
    "--limit", default=50, show_default=True, type=click.IntRange(1, _AT_MOST), help="How many at most."
)
@click.option("--cursor", "before", callback=_parse_cursor, metavar="CURSOR", help="Go on from there.")
@shared_options
def list_(
    endpoint_id: UUID | None,
    event: str | None,
    unit_code: str | None,
    status: str | None,
    limit: int,
    before: tuple[datetime, UUID],
    data: Path | None,
    as_json: bool,
) -> None:
    """List deliveries, the latest first."""
    filters = DeliveryFilter(
        since=_START,
        until=_END,
        events=None if event is None else (event,),
        unit_code=unit_code,
        status=None if status is None else DeliveryStatus(status),
    )
    page = _with_deliveries(data, lambda log: log.page(endpoint_id, before, filters, limit))
    cursor = creation_cursor(page[limit - 1]) if len(page) > limit else None
    if as_json:
        print_json({"deliveries": [delivery_document(one) for one in page[:limit]], "nextCursor": cursor})
        return
    headings = ("CREATED", "EVENT", "UNIT", "STATUS", "ATTEMPTS", "LAST ANSWER", "ID")
    print_table(headings, [_row(one) for one in page[:limit]], if_empty="There are no such deliveries.")
    if cursor is not None:
        click.echo(f"There are more: {_next_page_command(cursor)}", err=True)


@delivery.command()
@_with_id
@shared_options
def show(delivery_id: UUID, data: Path | None, as_json: bool) -> None:
    """Tell what became of a delivery, attempt by attempt."""
    found, attempts = _with_deliveries(data, lambda log: log.find(delivery_id))
    text = "\n".join(delivery_lines(found, attempts))
    print_result(as_json, delivery_with_attempts_document(found, attempts), text)


@delivery.command()
@_with_id
@shared_options
def resend(delivery_id: UUID, data: Path | None, as_json: bool) -> None:
    """Send it again, whatever became of it: the same id, the same body."""
    found, attempts = _with_deliveries(data, lambda log: log.resend(delivery_id, COMMAND))
    print_result(
        as_json,
        delivery_with_attempts_document(found, attempts),
        f"{found.event} is to be sent again; see what became of it: holdfast delivery show {found.id}",
    )


def _with_deliveries(data: Path | None, work: Callable[[Deliveries], Awaitable[T]]) -> T:
    return with_database(data, lambda database: work(Deliveries(database, EventFeed(database))))


def _next_page_command(cursor: str) -> str:
    """Return the command for the next page, with the same options."""
    context = click.get_current_context()
    words = ["holdfast", "delivery", "list"]
    for option in context.command.params:
        name = str(option.name)
        if name != "before" and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            words += [option.opts[0], str(context.params[name])]
    return shlex.join([*words, "--cursor", cursor])


def _row(one: Delivery) -> tuple[str, ...]:
    answer = str(one.last_cause or one.last_status_code or "-")
    created = exact_time(one.created_at)
    return created, one.event, one.unit_code or "-", one.status, str(one.attempts), answer, str(one.id)
