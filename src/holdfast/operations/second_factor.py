"""The second factor: codes from an authenticator app (TOTP, RFC 6238)."""

import hmac
import unicodedata
from datetime import datetime

import pyotp

_STEPS_APART = 1
"""How far the clock of the phone may be off."""
_DIGITS = 6
_SECRET_LENGTH = 32  # in base32: 20 bytes
_ISSUER = "Holdfast"


def new_secret() -> str:
    return pyotp.random_base32(_SECRET_LENGTH)


def accepted_step(secret: str, typed: str, now: datetime, used_step: int) -> int | None:
    """Return the time step of a right code, or None; no step up to ``used_step`` is accepted again."""
    totp, code = pyotp.TOTP(secret, digits=_DIGITS), _ascii_digits(typed)
    current = totp.timecode(now)
    for step in range(current - _STEPS_APART, current + _STEPS_APART + 1):
        if step > used_step and hmac.compare_digest(totp.generate_otp(step), code):
            return step
    return None


def enrolment_url(secret: str, email: str) -> str:
    """Return the address that the QR code contains."""
    return pyotp.TOTP(secret, digits=_DIGITS).provisioning_uri(email, _ISSUER)


def shown_secret(secret: str) -> str:
    """Write the secret in groups, for those who type it."""
    return " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))


def _ascii_digits(typed: str) -> str:
    """Read a code with or without spaces, in whatever digits the keyboard has."""
    found = [unicodedata.decimal(sign, None) for sign in "".join(typed.split())[: _DIGITS + 1]]
    return "".join("x" if digit is None else str(digit) for digit in found)
