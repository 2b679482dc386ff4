"""A delivery as a person reads it: what it is, where it stands, and each attempt in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from holdfast.domain.delivery import Delivery, DeliveryStatus
from holdfast.operations.deliveries import Attempt

_SHOWN_OF_ANSWER = 300


def delivery_lines(delivery: Delivery, attempts: Sequence[Attempt]) -> Iterator[str]:
    of_unit = "" if delivery.unit_code is None else f" of {delivery.unit_code}"
    yield f"{delivery.event}{of_unit}, {_standing(delivery)}"
    yield f"  delivery  {delivery.id}"
    yield f"  endpoint  {delivery.endpoint_id}"
    yield f"  created   {exact_time(delivery.created_at)}"
    yield f"  body      {delivery.body}"
    for attempt in attempts:
        yield ""
        yield from _attempt_lines(attempt)


def _standing(delivery: Delivery) -> str:
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
    yield f"     {_took(attempt)}"
    yield f"     POST {attempt.url}" + (f" at {attempt.address}" if attempt.address else "")
    if attempt.secret_id is not None:
        yield f"     signed with the secret {attempt.secret_id}"
    if attempt.response_body:
        yield f"     the answer: {_shown(attempt.response_body)}"


def _took(attempt: Attempt) -> str:
    parts = (
        ("name", attempt.dns_ms),
        ("connect", attempt.connect_ms),
        ("TLS", attempt.tls_ms),
        ("first byte", attempt.first_byte_ms),
    )
    told = ", ".join(f"{name} {_milliseconds(value)}" for name, value in parts if value is not None)
    return f"took {_milliseconds(attempt.duration_ms)}" + (f" ({told})" if told else "")


def _milliseconds(value: float) -> str:
    return f"{value:.0f} ms" if value >= 10 else f"{value:.1f} ms"


def _shown(body: bytes) -> str:
    """On one line, and nothing that would do something to a terminal."""
    text = body[:_SHOWN_OF_ANSWER].decode(errors="replace")
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain + ("…" if len(body) > _SHOWN_OF_ANSWER else "")


def exact_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC"
