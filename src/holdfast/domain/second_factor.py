"""The second factor: codes from an app on somebody's phone (TOTP, RFC 6238). Pure."""

import base64
import hashlib
import hmac
import secrets
import unicodedata
from datetime import datetime
from urllib.parse import quote, urlencode

STEP_SECONDS = 30
DIGITS = 6
_STEPS_APART = 1
"""How far the clock of the phone may be off."""
_SECRET_BYTES = 20
_ISSUER = "Holdfast"


def new_secret() -> str:
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def code_at(secret: str, step: int) -> str:
    digest = hmac.new(base64.b32decode(secret), step.to_bytes(8, "big"), hashlib.sha1).digest()
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return str(number % 10**DIGITS).zfill(DIGITS)


def step_of(secret: str, typed: str, now: datetime, used_step: int) -> int | None:
    """The step that the code is of, if it is right; each is good for once, so none up to ``used_step``."""
    code, here = _digits(typed), int(now.timestamp()) // STEP_SECONDS
    for step in range(here - _STEPS_APART, here + _STEPS_APART + 1):
        if step > used_step and hmac.compare_digest(code_at(secret, step).encode(), code.encode()):
            return step
    return None


def enrolment_url(secret: str, email: str) -> str:
    """What the QR code says."""
    label = quote(f"{_ISSUER}:{email}")
    return f"otpauth://totp/{label}?{urlencode({'secret': secret, 'issuer': _ISSUER})}"


def shown_secret(secret: str) -> str:
    """In groups, for those who type it."""
    return " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))


def _digits(typed: str) -> str:
    """With or without a space in the middle, in whatever digits the keyboard has."""
    found = [unicodedata.decimal(sign, None) for sign in "".join(typed.split())[: DIGITS + 1]]
    return "".join("x" if digit is None else str(digit) for digit in found)
