"""The signature of a delivery: HMAC-SHA256 over the timestamp, a dot and the raw body. Pure."""

import hmac
import re
from enum import StrEnum

TOLERANCE_SECONDS = 300
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WHOLE_SECONDS = re.compile(r"[0-9]{1,20}")


class SignatureProblem(StrEnum):
    """Why a signature is rejected; the receiver kit uses the same words."""

    SIGNATURE_MISSING = "signature-missing"
    SCHEME_NOT_SHA256 = "scheme-not-sha256"
    DIGEST_MISSING = "digest-missing"
    DIGEST_MALFORMED = "digest-malformed"
    TIMESTAMP_MISSING = "timestamp-missing"
    TIMESTAMP_NOT_A_NUMBER = "timestamp-not-a-number"
    TOO_OLD = "too-old"
    TOO_FAR_AHEAD = "too-far-ahead"
    DIGEST_DIFFERS = "digest-differs"


def sign(secret: str, timestamp: int, body: bytes, prefix: str = "") -> str:
    return f"sha256={_digest(secret, f'{prefix}{timestamp}', body)}"


def verify(
    secret: str,
    timestamp: str | None,
    signature: str | None,
    body: bytes,
    now: float | None,
    prefix: str = "",
) -> SignatureProblem | None:
    """Return why the signature is rejected, or None if it is valid. Without `now` the age is not checked."""
    if problem := check_signature_headers(timestamp, signature, now):
        return problem
    expected = f"sha256={_digest(secret, f'{prefix}{timestamp}', body)}"
    return None if hmac.compare_digest(expected, signature or "") else SignatureProblem.DIGEST_DIFFERS


def check_signature_headers(
    timestamp: str | None, signature: str | None, now: float | None = None
) -> SignatureProblem | None:
    """Return why the headers alone are rejected, whatever the body. Without `now` the age is not checked."""
    scheme, _, digest = (signature or "").partition("=")
    signed_at = parse_timestamp(timestamp)
    if not signature:
        return SignatureProblem.SIGNATURE_MISSING
    if scheme != "sha256":
        return SignatureProblem.SCHEME_NOT_SHA256
    if not _DIGEST.fullmatch(digest):
        return SignatureProblem.DIGEST_MALFORMED if digest else SignatureProblem.DIGEST_MISSING
    if signed_at is None:
        return SignatureProblem.TIMESTAMP_NOT_A_NUMBER if timestamp else SignatureProblem.TIMESTAMP_MISSING
    # Counted in whole seconds, as the timestamp is: of 300.9 s, 300 have passed.
    if now is None or -TOLERANCE_SECONDS <= now - signed_at < TOLERANCE_SECONDS + 1:
        return None
    return SignatureProblem.TOO_OLD if signed_at < now else SignatureProblem.TOO_FAR_AHEAD


def parse_timestamp(timestamp: str | None) -> int | None:
    """Parse strictly: `int` alone would also take '+1', ' 1', '1_0' and digits of other scripts."""
    return int(timestamp) if timestamp and _WHOLE_SECONDS.fullmatch(timestamp) else None


def _digest(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()
