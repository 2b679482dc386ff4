"""`verify` of the receiver kit, with the headers that frameworks really give, and the test vectors."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from email import message_from_string
from typing import Any
from uuid import UUID

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from holdfast.domain.event import EventName
from holdfast_webhooks import Event, Reason, SignatureRefused, Unit, sign, verify
from sdk.make_vectors import FILE, document
from tests.sdk.vectors import EVENTS, VECTORS, Vector, each, named

SOLD, PING = named("unit.sold"), named("ping")


def refused(headers: Any, body: bytes, secret: Any = SOLD.secret, now: float = SOLD.now) -> Reason:
    with pytest.raises(SignatureRefused) as caught:
        verify(headers, body, secret, now)
    assert str(caught.value) == caught.value.detail
    return caught.value.reason


@pytest.mark.parametrize("vector", each(VECTORS))
def test_a_vector_is_judged_as_it_says(vector: Vector) -> None:
    if vector.refused_for is None:
        assert verify(vector.headers, vector.body, vector.secret, vector.now).type in vector.body.decode()
    else:
        assert refused(vector.headers, vector.body, vector.secret, vector.now) == vector.refused_for


def test_an_event_is_read_whole() -> None:
    event = verify(SOLD.headers, SOLD.body, SOLD.secret, SOLD.now)
    assert event == Event(
        id=UUID(SOLD.headers["X-Service-Delivery"]),
        type="unit.sold",
        created_at=datetime(2026, 11, 14, 9, 30, tzinfo=UTC),
        unit=Unit(
            id=event.unit.id if event.unit else UUID(int=0),
            code="A-101",
            project_slug="marina-heights",
            status="sold",
            previous_status="reserved",
        ),
        booking_reference="HF-7K2M9Q",
        data={},
    )
    assert event.data["unit"]["id"] == str(event.unit and event.unit.id)


def test_a_ping_has_neither_unit_nor_booking_and_milliseconds_are_kept() -> None:
    event = verify(PING.headers, PING.body, PING.secret, PING.now)
    assert (event.type, event.unit, event.booking_reference) == ("ping", None, None)
    body = SOLD.body.replace(b"00.000Z", b"00.123Z")
    headers = {**SOLD.headers, "X-Service-Signature": sign(SOLD.secret, SOLD.now, body)}
    assert verify(headers, body, SOLD.secret, SOLD.now).created_at.microsecond == 123_000


@pytest.mark.parametrize(
    "shape",
    [
        dict,
        lambda headers: {name.lower(): value for name, value in headers.items()},
        lambda headers: {name.upper().encode(): value.encode() for name, value in headers.items()},
        lambda headers: list(headers.items()),
        lambda headers: iter([(name.encode(), value.encode()) for name, value in headers.items()]),
        lambda headers: {name: f" {value}\t" for name, value in headers.items()},
        httpx.Headers,
        Headers,
        lambda headers: message_from_string("".join(f"{name}: {headers[name]}\n" for name in headers)),
    ],
    ids=["dict", "lower", "upper bytes", "pairs", "iterator", "white space", "httpx", "starlette", "email"],
)
def test_headers_come_in_any_shape(shape: Callable[[dict[str, str]], Any]) -> None:
    assert verify(shape(SOLD.headers), SOLD.body, SOLD.secret, SOLD.now).type == "unit.sold"


def test_a_header_of_ours_that_stands_twice_is_refused_and_any_other_is_not() -> None:
    for name in ("Event", "Delivery", "Timestamp", "Signature"):
        again = (f"x-service-{name}", SOLD.headers[f"X-Service-{name}"])
        assert refused([*SOLD.headers.items(), again], SOLD.body) is Reason.HEADER_REPEATED
    headers = [*SOLD.headers.items(), ("Via", "1.1 a"), ("Via", "1.1 b")]
    assert verify(headers, SOLD.body, SOLD.secret, SOLD.now).type == "unit.sold"


def test_faults_of_the_caller_are_raised_as_such() -> None:
    wrong: Any
    for wrong in (SOLD.body.decode(), {"id": 1}, None):
        with pytest.raises(TypeError, match="raw bytes"):
            verify(SOLD.headers, wrong, SOLD.secret, SOLD.now)
    with pytest.raises(TypeError, match="list"):
        verify({"X-Service-Event": ["ping"]}, SOLD.body, SOLD.secret, SOLD.now)
    for wrong in ("", b"", [], [SOLD.secret, ""], f"{SOLD.secret}\n"):
        with pytest.raises(ValueError, match="secret"):
            verify(SOLD.headers, SOLD.body, wrong, SOLD.now)


def test_of_several_secrets_one_must_match() -> None:
    secret: Any
    for secret in ([SOLD.secret, "old"], ("new", SOLD.secret), SOLD.secret.encode()):
        assert verify(SOLD.headers, SOLD.body, secret, SOLD.now).type == "unit.sold"
    assert refused(SOLD.headers, SOLD.body, ["new", "old"]) is Reason.DIGEST_DIFFERS


def test_now_is_by_default_the_time_of_this_clock() -> None:
    fresh = int(time.time())
    headers = {**SOLD.headers, "X-Service-Timestamp": str(fresh)}
    headers["X-Service-Signature"] = sign(SOLD.secret, fresh, SOLD.body)
    assert verify(headers, SOLD.body, SOLD.secret).type == "unit.sold"
    assert refused(headers, SOLD.body, now=fresh + 301.5) is Reason.TOO_OLD
    assert refused(headers, SOLD.body, now=float("nan")) is Reason.TOO_OLD


def test_the_age_is_counted_in_whole_seconds() -> None:
    for late_seconds in (-300, 300, 300.4, 300.999):
        assert verify(SOLD.headers, SOLD.body, SOLD.secret, SOLD.now + late_seconds).type == "unit.sold"
    assert refused(SOLD.headers, SOLD.body, now=SOLD.now + 301) is Reason.TOO_OLD
    assert refused(SOLD.headers, SOLD.body, now=SOLD.now - 300.001) is Reason.TOO_FAR_AHEAD
    assert refused(SOLD.headers, SOLD.body, now=float("inf")) is Reason.TOO_OLD
    assert refused(SOLD.headers, SOLD.body, now=float("-inf")) is Reason.TOO_FAR_AHEAD


def one_changed(text: bytes, data: st.DataObject) -> bytes:
    at, mask = data.draw(st.integers(0, len(text) - 1)), data.draw(st.integers(1, 255))
    return text[:at] + bytes([text[at] ^ mask]) + text[at + 1 :]


@given(st.sampled_from(EVENTS), st.data())
def test_any_changed_byte_of_any_body_is_refused(vector: Vector, data: st.DataObject) -> None:
    body = one_changed(vector.body, data)
    assert refused(vector.headers, body, vector.secret, vector.now) is Reason.DIGEST_DIFFERS


@given(st.sampled_from(["Timestamp", "Signature", "Delivery", "Event"]), st.data())
def test_any_changed_byte_of_a_header_is_refused(name: str, data: st.DataObject) -> None:
    header = f"X-Service-{name}"
    changed = one_changed(SOLD.headers[header].encode(), data).decode("latin-1")
    assert refused({**SOLD.headers, header: changed}, SOLD.body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["id", "type", "data", "unit"]), inner),
)


@given(st.binary() | json_values.map(lambda value: repr(value).replace("'", '"').encode()))
@example(b"[" * 200_000)
def test_whatever_is_signed_is_an_event_or_refused_for_a_reason(body: bytes) -> None:
    headers = {**SOLD.headers, "X-Service-Signature": sign(SOLD.secret, SOLD.now, body)}
    assert refused(headers, body) is Reason.BODY_NOT_AN_EVENT


def test_the_vectors_are_what_their_script_writes_and_have_every_event_and_every_reason() -> None:
    assert FILE.read_text(encoding="utf-8") == document()
    assert len({vector.name for vector in VECTORS}) == len(VECTORS)
    assert {vector.headers["X-Service-Event"] for vector in EVENTS} >= {*EventName, "ping"}
    # A header that is given twice cannot be written down as a JSON object.
    expected = {str(reason) for reason in Reason} - {"header-repeated"}
    assert {vector.refused_for for vector in VECTORS} == expected | {None}
