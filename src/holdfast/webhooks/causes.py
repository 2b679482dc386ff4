"""The causes of failed attempts: one message each, for people who read the log."""

from __future__ import annotations

import errno
import ssl
from enum import Enum, auto

from holdfast.domain.addresses import IPAddress
from holdfast.domain.delivery import SIGNING_TIMED_OUT
from holdfast.domain.errors import AnyMessage, Message

REFUSED = "The connection was refused."
CLOSED_EARLY = "The connection was closed before an answer came."
CLOSED_IN_HEADERS = "The connection was closed before the headers of the answer ended."
CLOSED_IN_TLS = "The connection was closed during the TLS handshake."
RESET_EARLY = "The connection was reset before an answer came."
RESET_IN_HEADERS = "The connection was reset before the headers of the answer ended."
SPOKE_FIRST = "The receiver sent data before the request."
NOT_HTTP = "The answer is not HTTP."
HEAD_NOT_HTTP = "The head of the answer is not valid HTTP."
HEADERS_TOO_LONG = "The headers of the answer are longer than 64 KiB."
NAME_UNKNOWN = "The host name does not exist."
NAME_WITHOUT_ADDRESS = "The host name has no address."
NAME_UNRESOLVED = "The host name could not be resolved."
NOT_ENCRYPTED = "The URL must begin with https://: http is for addresses in the allowed networks only."
NOT_ALLOWED = "The host name leads to an address that is not allowed."
"""Without the address: a URL must not tell what names stand for in the operator's network."""
OTHER_PEER = "The connection led to another address than the one that was checked."


class Phase(Enum):
    RESOLVING = auto()
    CONNECTING = auto()
    ENCRYPTING = auto()
    SIGNING = auto()
    WAITING = auto()
    READING_HEADERS = auto()


_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_CONNECTING = {
    errno.ECONNREFUSED: REFUSED,
    errno.ECONNRESET: "The connection was reset.",
    errno.ETIMEDOUT: "The host did not answer the connection.",
    errno.EHOSTUNREACH: "The host cannot be reached.",
    errno.ENETUNREACH: "The network of the host cannot be reached.",
    errno.EADDRNOTAVAIL: "The host cannot be reached from this machine.",
    errno.EAFNOSUPPORT: "The host cannot be reached from this machine.",
    errno.EACCES: "This machine does not allow the connection.",
    errno.EPERM: "This machine does not allow the connection.",
    errno.EMFILE: "This machine has too many open connections.",
    errno.ENFILE: "This machine has too many open connections.",
}
# The numbers of OpenSSL's X509_V_ERR_….
_CERTIFICATE = {
    9: "The certificate is not valid yet.",
    10: "The certificate has expired.",
    18: "The certificate is self-signed.",
    19: "The certificate's issuer is not known.",
    20: "The certificate's issuer is not known.",
    21: "The certificate's issuer is not known.",
    23: "The certificate was revoked.",
    62: "The certificate is for another host.",
    64: "The certificate is for another host.",
}
_NOT_TLS = frozenset(("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE", "RECORD_LAYER_FAILURE"))
# For a deadline of one second, of ten, and of any other number of seconds.
_TIMEOUTS = {
    Phase.RESOLVING: (
        "The host name could not be resolved within one second.",
        "The host name could not be resolved within ten seconds.",
        "The host name could not be resolved within %(seconds)s seconds.",
    ),
    Phase.CONNECTING: (
        "No connection within one second.",
        "No connection within ten seconds.",
        "No connection within %(seconds)s seconds.",
    ),
    Phase.ENCRYPTING: (
        "The TLS handshake did not end within one second.",
        "The TLS handshake did not end within ten seconds.",
        "The TLS handshake did not end within %(seconds)s seconds.",
    ),
    Phase.WAITING: (
        "No answer within one second.",
        "No answer within ten seconds.",
        "No answer within %(seconds)s seconds.",
    ),
    Phase.READING_HEADERS: (
        "The headers of the answer did not end within one second.",
        "The headers of the answer did not end within ten seconds.",
        "The headers of the answer did not end within %(seconds)s seconds.",
    ),
}


def explain_status(code: int) -> AnyMessage:
    """Explain a status other than 2xx."""
    if code in _REDIRECTS:
        return Message("The receiver answered %(code)s and redirects are not followed.", {"code": code})
    if code == 101:
        return "The receiver answered 101 and asks for another protocol."
    return Message("The receiver answered %(code)s.", {"code": code})


def explain_address(address: IPAddress, kind: str) -> Message:
    message = "The URL's host is %(address)s, which is %(address_kind)s."
    return Message(message, {"address": str(address), "address_kind": kind})


def explain_connect_error(error: OSError) -> AnyMessage:
    known = _CONNECTING.get(error.errno or 0)
    return known or Message("The connection failed: %(reason)s.", {"reason": error.strerror or str(error)})


def explain_tls_error(error: OSError) -> AnyMessage:
    if isinstance(error, ssl.SSLCertVerificationError):
        known = _CERTIFICATE.get(error.verify_code)
        return known or Message("The certificate is not valid: %(reason)s.", {"reason": error.verify_message})
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return CLOSED_IN_TLS
    if error.reason in _NOT_TLS:
        return "The receiver does not speak TLS."
    reason = (error.reason or "unknown").rpartition("_ALERT_")[2]
    return Message("The TLS handshake failed: %(reason)s.", {"reason": reason.replace("_", " ").lower()})


def explain_timeout(phase: Phase, timeout_seconds: float) -> AnyMessage:
    if phase is Phase.SIGNING:
        return SIGNING_TIMED_OUT
    after_one, after_ten, after_any = _TIMEOUTS[phase]
    if timeout_seconds == 1:
        return after_one
    return after_ten if timeout_seconds == 10 else Message(after_any, {"seconds": f"{timeout_seconds:g}"})
