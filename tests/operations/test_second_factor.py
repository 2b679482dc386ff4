"""Codes of the second factor are those of RFC 6238, and each opens once."""

import base64
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, unquote, urlsplit

import pyotp
import pytest

from holdfast.operations.login import accepted_step, enrolment_url, format_secret, new_secret

# Of appendix B of the RFC, whose codes have eight digits: ours are the last six of them.
SECRET = base64.b32encode(b"12345678901234567890").decode()
VECTORS = [
    (59, "94287082"),
    (1111111109, "07081804"),
    (1111111111, "14050471"),
    (1234567890, "89005924"),
    (2000000000, "69279037"),
    (20000000000, "65353130"),
]
STEP_SECONDS = 30
NOW = datetime.fromtimestamp(1111111109, UTC)
HERE = 1111111109 // STEP_SECONDS


def code_at(step: int) -> str:
    return pyotp.TOTP(SECRET).generate_otp(step)


@pytest.mark.parametrize(("second", "code"), VECTORS)
def test_the_codes_are_those_of_the_rfc(second: int, code: str) -> None:
    now = datetime.fromtimestamp(second, UTC)
    assert accepted_step(SECRET, code[-6:], now, used_step=0) == second // STEP_SECONDS


@pytest.mark.parametrize("apart", [-1, 0, 1])
def test_a_clock_may_be_a_step_off(apart: int) -> None:
    assert accepted_step(SECRET, code_at(HERE + apart), NOW, used_step=0) == HERE + apart


@pytest.mark.parametrize("apart", [-2, 2])
def test_a_clock_may_not_be_two_steps_off(apart: int) -> None:
    assert accepted_step(SECRET, code_at(HERE + apart), NOW, used_step=0) is None


def test_a_used_step_is_not_accepted_again_nor_is_one_before_it() -> None:
    assert accepted_step(SECRET, code_at(HERE), NOW, used_step=HERE) is None
    assert accepted_step(SECRET, code_at(HERE - 1), NOW, used_step=HERE) is None
    assert accepted_step(SECRET, code_at(HERE + 1), NOW, used_step=HERE) == HERE + 1
    later = NOW + timedelta(seconds=STEP_SECONDS)
    assert accepted_step(SECRET, code_at(HERE + 1), later, used_step=HERE) == HERE + 1


@pytest.mark.parametrize("typed", ["081804", "081 804", " 081804\n", "٠٨١٨٠٤", "۰۸۱۸۰۴"], ids=ascii)
def test_it_is_read_as_people_type_it(typed: str) -> None:
    assert accepted_step(SECRET, typed, NOW, used_step=0) == HERE


@pytest.mark.parametrize("typed", ["", "81804", "0818041", "08180x", "-81804", "²81804", "\0", "x" * 9999])
def test_anything_else_is_no_code(typed: str) -> None:
    assert accepted_step(SECRET, typed, NOW, used_step=0) is None


def test_secrets_are_new_and_long_enough() -> None:
    made = {new_secret() for _ in range(50)}
    assert len(made) == 50
    assert {len(base64.b32decode(secret)) for secret in made} == {20}
    assert all(format_secret(secret).replace(" ", "") == secret for secret in made)


def test_the_qr_code_names_the_account_and_the_secret() -> None:
    parts = urlsplit(enrolment_url(SECRET, "nora+1@example.com"))
    assert (parts.scheme, parts.netloc) == ("otpauth", "totp")
    assert unquote(parts.path) == "/Holdfast:nora+1@example.com"
    assert parse_qs(parts.query) == {"secret": [SECRET], "issuer": ["Holdfast"]}
