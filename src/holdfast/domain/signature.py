"""The signature of a delivery: HMAC-SHA256 over the timestamp, a dot and the raw body. Pure."""

import hmac
import re
from enum import StrEnum

TOLERANCE_SECONDS = 300
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WHOLE_SECONDS = re.compile(r"[0-9]{1,20}")


class SignatureProblem(StrEnum):
    """Why a signature is refused; the receiver kit uses the same words."""

    SIGNATURE_MISSING = "signature-missing"
    SCHEME_NOT_SHA256 = "scheme-not-sha256"
    DIGEST_MISSING = "digest-missing"
    DIGEST_MALFORMED = "digest-malformed"
    TIMESTAMP_MISSING = "timestamp-missing"
    TIMESTAMP_NOT_A_NUMBER = "timestamp-not-a-number"
    TOO_OLD = "too-old"
    TOO_FAR_AHEAD = "too-far-ahead"
    DIGEST_DIFFERS = "digest-differs"


def sign(secret: str, timestamp: int, body: bytes) -> str:
    return f"sha256={_digest(secret, str(timestamp), body)}"


def verify(
    secret: str, timestamp: str | None, signature: str | None, body: bytes, now: float | None
) -> SignatureProblem | None:
    """Why the signature is refused, or None if it is valid. Without `now` the age is left out."""
    return check_signature_headers(timestamp, signature, now) or _digest_fault(
        secret, timestamp or "", signature or "", body
    )


def check_signature_headers(
    timestamp: str | None, signature: str | None, now: float | None = None
) -> SignatureProblem | None:
    """Why the headers alone are refused, whatever the body. Without `now` the age is left out."""
    return _form_fault(signature) or _time_fault(timestamp, now)


def parse_timestamp(timestamp: str | None) -> int | None:
    """The header's number. `int` alone would also take '+1', ' 1', '1_0' and digits of other scripts."""
    return int(timestamp) if timestamp and _WHOLE_SECONDS.fullmatch(timestamp) else None


def _form_fault(signature: str | None) -> SignatureProblem | None:
    if not signature:
        return SignatureProblem.SIGNATURE_MISSING
    scheme, _, digest = signature.partition("=")
    if scheme != "sha256":
        return SignatureProblem.SCHEME_NOT_SHA256
    if not digest:
        return SignatureProblem.DIGEST_MISSING
    return None if _DIGEST.fullmatch(digest) else SignatureProblem.DIGEST_MALFORMED


def _time_fault(timestamp: str | None, now: float | None) -> SignatureProblem | None:
    if not timestamp:
        return SignatureProblem.TIMESTAMP_MISSING
    signed_at = parse_timestamp(timestamp)
    if signed_at is None:
        return SignatureProblem.TIMESTAMP_NOT_A_NUMBER
    # Counted in whole seconds, as the timestamp is: of 300.9 s, 300 have passed.
    if now is None or -TOLERANCE_SECONDS <= now - signed_at < TOLERANCE_SECONDS + 1:
        return None
    return SignatureProblem.TOO_OLD if signed_at < now else SignatureProblem.TOO_FAR_AHEAD


def _digest_fault(secret: str, timestamp: str, signature: str, body: bytes) -> SignatureProblem | None:
    expected = f"sha256={_digest(secret, timestamp, body)}"
    return None if hmac.compare_digest(expected, signature) else SignatureProblem.DIGEST_DIFFERS


def _digest(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.digest(secret.encode(), timestamp.encode() + b"." + body, "sha256").hex()
