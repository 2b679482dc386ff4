"""The signature of a delivery, held against the vectors that the receiver kit is held against too."""

import hashlib
import hmac
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.domain.signature import SignatureProblem, parse_timestamp, sign, verify
from tests.sdk.vectors import SIGNED, VECTORS, Vector, each

NOW = 1_794_648_600
DAY_SECONDS = 86_400


def verdict(vector: Vector, now: float | None) -> SignatureProblem | None:
    return verify(vector.secret, vector.timestamp, vector.signature, vector.body, now)


@pytest.mark.parametrize("vector", each(VECTORS))
def test_a_vector_is_judged_as_it_says(vector: Vector) -> None:
    assert verdict(vector, vector.now) == vector.signature_refused_for


@pytest.mark.parametrize("vector", each(SIGNED))
def test_signing_gives_the_signature_of_the_vector(vector: Vector) -> None:
    assert vector.timestamp is not None
    assert sign(vector.secret, int(vector.timestamp), vector.body) == vector.signature


def test_every_reason_has_a_vector() -> None:
    assert {vector.signature_refused_for for vector in VECTORS} == {*map(str, SignatureProblem), None}


@pytest.mark.parametrize("vector", each(SIGNED))
def test_without_a_now_the_age_is_left_out(vector: Vector) -> None:
    assert verdict(vector, vector.now + DAY_SECONDS) is SignatureProblem.TOO_OLD
    assert verdict(vector, None) is None


@pytest.mark.parametrize(
    ("late_seconds", "reason"),
    [
        (300, None),
        (300.4, None),
        (300.999, None),
        (301, SignatureProblem.TOO_OLD),
        (-300, None),
        (-300.001, SignatureProblem.TOO_FAR_AHEAD),
        (-301, SignatureProblem.TOO_FAR_AHEAD),
        (math.inf, SignatureProblem.TOO_OLD),
        (-math.inf, SignatureProblem.TOO_FAR_AHEAD),
    ],
)
def test_the_age_is_counted_in_whole_seconds(late_seconds: float, reason: SignatureProblem | None) -> None:
    signature = sign("secret", NOW, b"{}")
    assert verify("secret", str(NOW), signature, b"{}", NOW + late_seconds) is reason


@pytest.mark.parametrize("timestamp", ["٣", "1_0", " 1", "1 ", "1\n", "0x1", "1e3", "²", "1" * 5000])
def test_a_timestamp_is_of_ascii_digits_alone(timestamp: str) -> None:
    assert parse_timestamp(timestamp) is None
    assert (
        verify("secret", timestamp, sign("secret", 1, b""), b"", 1) is SignatureProblem.TIMESTAMP_NOT_A_NUMBER
    )


@given(st.text(min_size=1), st.integers(0, 2**40), st.binary())
def test_what_is_signed_is_valid_and_is_the_hmac_of_the_standard_library(
    secret: str, timestamp: int, body: bytes
) -> None:
    signature = sign(secret, timestamp, body)
    assert verify(secret, str(timestamp), signature, body, timestamp) is None
    expected = hmac.new(secret.encode(), str(timestamp).encode() + b"." + body, hashlib.sha256).hexdigest()
    assert signature == f"sha256={expected}"


@given(st.binary(min_size=1), st.data())
def test_any_flipped_bit_of_the_body_is_refused(body: bytes, data: st.DataObject) -> None:
    at, bit = data.draw(st.integers(0, len(body) - 1)), data.draw(st.integers(0, 7))
    flipped = body[:at] + bytes([body[at] ^ 1 << bit]) + body[at + 1 :]
    assert (
        verify("secret", str(NOW), sign("secret", NOW, body), flipped, NOW) is SignatureProblem.DIGEST_DIFFERS
    )


@given(st.integers(0, 63), st.sampled_from("0123456789abcdef"))
def test_any_changed_digit_of_the_digest_is_refused(at: int, digit: str) -> None:
    right = sign("secret", NOW, b"{}")
    changed = right[: 7 + at] + digit + right[8 + at :]
    expected = None if changed == right else SignatureProblem.DIGEST_DIFFERS
    assert verify("secret", str(NOW), changed, b"{}", NOW) is expected


@given(st.text(), st.text(), st.binary(), st.floats(allow_nan=False))
def test_no_input_makes_it_fail_otherwise_than_with_a_reason(
    timestamp: str, signature: str, body: bytes, now: float
) -> None:
    assert verify("secret", timestamp, signature, body, now) is not None
