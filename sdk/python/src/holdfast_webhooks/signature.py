"""HMAC-SHA256 over the timestamp, a dot and the raw body."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from typing import Union

from holdfast_webhooks.refused import Reason, SignatureRefused

TOLERANCE_SECONDS = 300
Secret = Union[str, bytes]
Secrets = Union[Secret, Sequence[Secret]]
_DIGEST = re.compile(r"[0-9a-f]{64}")
_WHOLE_SECONDS = re.compile(r"[0-9]{1,20}")


def sign(secret: Secret, timestamp: int, body: bytes) -> str:
    """The value of X-Service-Signature; for the tests of your receiver."""
    (key,) = signing_keys(secret)
    return f"sha256={_digest(key, str(timestamp), body)}"


def check_signature(
    keys: Sequence[bytes], timestamp: str | None, signature: str | None, body: bytes, now: float
) -> None:
    digest = _digest_in(signature)
    text = _fresh(timestamp, now)
    # Each key is tried, whichever matches: the time taken tells nothing about the secrets.
    matches = [hmac.compare_digest(_digest(key, text, body), digest) for key in keys]
    if not any(matches):
        raise SignatureRefused(Reason.DIGEST_DIFFERS)


def signing_keys(secrets: Secrets) -> list[bytes]:
    """A secret that was never set must not become a key that everybody knows."""
    several = [secrets] if isinstance(secrets, (str, bytes)) else list(secrets)
    keys = [one.encode() if isinstance(one, str) else one for one in several]
    if not keys or not all(keys):
        raise ValueError("There is no signing secret: it is empty, or there is none in the sequence.")
    if any(key != key.strip() for key in keys):
        raise ValueError("The signing secret has white space around it: was it read together with a newline?")
    return keys


def _digest_in(signature: str | None) -> str:
    if not signature:
        raise SignatureRefused(Reason.SIGNATURE_MISSING)
    scheme, _, digest = signature.partition("=")
    if scheme != "sha256":
        raise SignatureRefused(Reason.SCHEME_NOT_SHA256)
    if not digest:
        raise SignatureRefused(Reason.DIGEST_MISSING)
    if not _DIGEST.fullmatch(digest):
        raise SignatureRefused(Reason.DIGEST_MALFORMED)
    return digest


def _fresh(timestamp: str | None, now: float) -> str:
    """The timestamp as it was received, since its very text is signed."""
    if not timestamp:
        raise SignatureRefused(Reason.TIMESTAMP_MISSING)
    if not _WHOLE_SECONDS.fullmatch(timestamp):
        raise SignatureRefused(Reason.TIMESTAMP_NOT_A_NUMBER)
    # Counted in whole seconds, as the timestamp is, and so that a `now` that is not a number (NaN) refuses.
    if not -TOLERANCE_SECONDS <= now - int(timestamp) < TOLERANCE_SECONDS + 1:
        raise SignatureRefused(Reason.TOO_FAR_AHEAD if int(timestamp) > now else Reason.TOO_OLD)
    return timestamp


def _digest(key: bytes, timestamp: str, body: bytes) -> str:
    return hmac.digest(key, timestamp.encode() + b"." + body, "sha256").hex()
