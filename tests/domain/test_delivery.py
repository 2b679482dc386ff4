"""Deliveries and their endpoints: when the next attempt comes, who fails, and how bodies are signed."""

import base64
import hashlib
import hmac
import math
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain import delivery, endpoint
from holdfast.domain.delivery import AttemptDecision, EndpointHealth, Outcome, Progress, Schedule, Trigger
from holdfast.domain.endpoint import FAILING_AFTER, Endpoint, EndpointConfig, EndpointFailure, EndpointState
from holdfast.domain.signature import SignatureProblem, parse_timestamp, sign, verify
from tests.sdk.vectors import SIGNED, VECTORS, Vector, each

DEFAULT = Schedule()
TIMESTAMP = 1_794_648_600
NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def after_failure(tried: int, schedule: Schedule = DEFAULT) -> AttemptDecision:
    return delivery.decide_after_attempt(Progress(1, tried, tried), False, schedule)


def test_the_gap_doubles_from_thirty_seconds_until_the_eighth_failure_is_the_last() -> None:
    decisions = [after_failure(tried) for tried in range(8)]
    assert [decision.gap.total_seconds() for decision in decisions] == [30, 60, 120, 240, 480, 960, 1920, 0]
    assert [decision.outcome for decision in decisions] == [Outcome.RETRY] * 7 + [Outcome.FAILED]
    shorter = [after_failure(tried, Schedule(0.5, 2)).outcome for tried in (0, 1)]
    assert shorter == [Outcome.RETRY, Outcome.FAILED]
    # A new series counts from its own start.
    again = delivery.decide_after_attempt(Progress(3, 0, 16), False, DEFAULT)
    assert again == AttemptDecision(Outcome.RETRY, timedelta(seconds=30))


def test_a_success_ends_a_delivery_and_a_lost_attempt_is_made_again_at_once() -> None:
    for tried, outcome in ((0, Outcome.RETRY), (7, Outcome.FAILED)):
        progress = Progress(1, tried, tried)
        succeeded = delivery.decide_after_attempt(progress, True, DEFAULT)
        assert succeeded == AttemptDecision(Outcome.DELIVERED)
        assert delivery.decide_after_lost(progress, DEFAULT) == AttemptDecision(outcome, timedelta())


def test_an_attempt_is_the_first_a_retry_or_a_resend() -> None:
    assert Progress(1, 0, 0).trigger is Trigger.FIRST
    assert Progress(1, 1, 1).trigger is Progress(2, 3, 11).trigger is Trigger.RETRY
    assert Progress(2, 0, 8).trigger is Progress(2, 0, 0).trigger is Trigger.RESEND


def test_the_later_of_two_attempts_decides_how_an_endpoint_is() -> None:
    failed, gone = EndpointHealth("500", False, False), EndpointHealth("410", True, False)
    delivered = EndpointHealth(None, False, True)
    assert failed.merge(gone) == gone
    assert gone.merge(failed) == EndpointHealth("500", True, False)
    assert gone.merge(delivered) == delivered
    assert delivered.merge(gone) == EndpointHealth("410", True, True)


# Endpoints


def test_a_secret_is_32_random_bytes_in_letters_that_fit_everywhere() -> None:
    secrets = {endpoint.generate_secret() for _ in range(100)}
    assert len(secrets) == 100
    for secret in secrets:
        assert re.fullmatch(r"hfs_[A-Za-z0-9_-]{43}", secret)
        assert len(base64.urlsafe_b64decode(secret.removeprefix("hfs_") + "=")) == 32


def failure(ago: timedelta, gone_at: datetime | None = None) -> EndpointFailure:
    return EndpointFailure(NOW - ago, "The receiver answered 500.", gone_at)


@pytest.mark.parametrize(
    ("found", "failing"),
    [
        (None, False),
        (failure(timedelta()), False),
        (failure(FAILING_AFTER - timedelta(milliseconds=1)), False),
        (failure(FAILING_AFTER), True),
        (failure(timedelta(days=30)), True),
        (failure(timedelta(), gone_at=NOW), True),
    ],
)
def test_an_endpoint_fails_after_a_day_or_if_it_is_gone(found: EndpointFailure | None, failing: bool) -> None:
    def state(*, paused: bool) -> EndpointState:
        config = EndpointConfig("https://example.com/hook", paused=paused)
        return Endpoint(UUID(int=1), config, UUID(int=2), NOW, found, NOW, NOW, NOW).state

    assert state(paused=False) is (EndpointState.FAILING if failing else EndpointState.ACTIVE)
    assert state(paused=True) is EndpointState.PAUSED


# Signatures, with the vectors of the receiver kit


def verdict(vector: Vector, now: float | None) -> SignatureProblem | None:
    return verify(vector.secret, vector.timestamp, vector.signature, vector.body, now)


@pytest.mark.parametrize("vector", each(VECTORS))
def test_a_vector_is_judged_as_it_says(vector: Vector) -> None:
    assert verdict(vector, vector.now) == vector.signature_refused_for


@pytest.mark.parametrize("vector", each(SIGNED))
def test_signing_gives_the_signature_of_the_vector_whose_age_needs_a_now(vector: Vector) -> None:
    assert vector.timestamp is not None
    assert sign(vector.secret, int(vector.timestamp), vector.body) == vector.signature
    assert verdict(vector, vector.now + 86_400) is SignatureProblem.TOO_OLD
    assert verdict(vector, None) is None


def test_every_reason_has_a_vector() -> None:
    assert {vector.signature_refused_for for vector in VECTORS} == {*map(str, SignatureProblem), None}


@pytest.mark.parametrize(
    ("late_seconds", "reason"),
    [
        *((late, None) for late in (300, 300.4, 300.999, -300)),
        *((late, SignatureProblem.TOO_OLD) for late in (301, math.inf)),
        *((late, SignatureProblem.TOO_FAR_AHEAD) for late in (-300.001, -301, -math.inf)),
    ],
)
def test_the_age_is_counted_in_whole_seconds(late_seconds: float, reason: SignatureProblem | None) -> None:
    signature = sign("secret", TIMESTAMP, b"{}")
    assert verify("secret", str(TIMESTAMP), signature, b"{}", TIMESTAMP + late_seconds) is reason


@pytest.mark.parametrize("timestamp", ["٣", "1_0", " 1", "1 ", "1\n", "0x1", "1e3", "²", "1" * 5000])
def test_a_timestamp_is_of_ascii_digits_alone(timestamp: str) -> None:
    assert parse_timestamp(timestamp) is None
    problem = verify("secret", timestamp, sign("secret", 1, b""), b"", 1)
    assert problem is SignatureProblem.TIMESTAMP_NOT_A_NUMBER


@given(st.text(min_size=1), st.integers(0, 2**40), st.binary())
def test_a_signature_is_the_hmac_of_the_standard_library(secret: str, timestamp: int, body: bytes) -> None:
    signature = sign(secret, timestamp, body)
    assert verify(secret, str(timestamp), signature, body, timestamp) is None
    expected = hmac.new(secret.encode(), str(timestamp).encode() + b"." + body, hashlib.sha256).hexdigest()
    assert signature == f"sha256={expected}"


@given(st.integers(0, 63), st.sampled_from("0123456789abcdef"))
def test_any_changed_digit_of_the_digest_is_refused(at: int, digit: str) -> None:
    right = sign("secret", TIMESTAMP, b"{}")
    changed = right[: 7 + at] + digit + right[8 + at :]
    expected = None if changed == right else SignatureProblem.DIGEST_DIFFERS
    assert verify("secret", str(TIMESTAMP), changed, b"{}", TIMESTAMP) is expected


@given(st.text(), st.text(), st.binary(), st.floats(allow_nan=False))
def test_any_other_input_is_refused(timestamp: str, signature: str, body: bytes, now: float) -> None:
    assert verify("secret", timestamp, signature, body, now) is not None
