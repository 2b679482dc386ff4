"""Why a request is not taken for a delivery."""

from __future__ import annotations

from enum import Enum


class Reason(str, Enum):
    """Equal to its text, so that `refused.reason == "too-old"` works too."""

    SIGNATURE_MISSING = "signature-missing"
    SCHEME_NOT_SHA256 = "scheme-not-sha256"
    DIGEST_MISSING = "digest-missing"
    DIGEST_MALFORMED = "digest-malformed"
    TIMESTAMP_MISSING = "timestamp-missing"
    TIMESTAMP_NOT_A_NUMBER = "timestamp-not-a-number"
    TOO_OLD = "too-old"
    TOO_FAR_AHEAD = "too-far-ahead"
    DIGEST_DIFFERS = "digest-differs"

    HEADER_REPEATED = "header-repeated"
    BODY_NOT_AN_EVENT = "body-not-an-event"
    ID_DIFFERS = "id-differs"
    TYPE_DIFFERS = "type-differs"

    def __str__(self) -> str:
        return self.value


_SENTENCES = {
    Reason.SIGNATURE_MISSING: "The header X-Service-Signature is missing.",
    Reason.SCHEME_NOT_SHA256: "The scheme of X-Service-Signature is not sha256.",
    Reason.DIGEST_MISSING: "X-Service-Signature has no digest after the scheme.",
    Reason.DIGEST_MALFORMED: "The digest in X-Service-Signature is not 64 lower-case hexadecimal digits.",
    Reason.TIMESTAMP_MISSING: "The header X-Service-Timestamp is missing.",
    Reason.TIMESTAMP_NOT_A_NUMBER: "X-Service-Timestamp is not a whole number of seconds.",
    Reason.TOO_OLD: "X-Service-Timestamp is more than 300 seconds in the past; is this clock right?",
    Reason.TOO_FAR_AHEAD: "X-Service-Timestamp is more than 300 seconds in the future; is this clock right?",
    Reason.DIGEST_DIFFERS: "The digest is not that of this body and timestamp with this receiver's secret.",
    Reason.HEADER_REPEATED: "A header of the delivery stands there more than once.",
    Reason.BODY_NOT_AN_EVENT: "The body is not that of a delivery.",
    Reason.ID_DIFFERS: "X-Service-Delivery is not the id in the body.",
    Reason.TYPE_DIFFERS: "X-Service-Event is not the type in the body.",
}


class SignatureRefused(Exception):
    """The request is not a delivery that can be trusted: act on nothing in it."""

    def __init__(self, reason: Reason, detail: str | None = None) -> None:
        self.reason = reason
        self.detail = detail or _SENTENCES[reason]
        super().__init__(self.detail)
