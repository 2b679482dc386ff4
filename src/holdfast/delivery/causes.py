"""Why an attempt failed, in plain words: one sentence each, for people who read the log."""

from __future__ import annotations

import errno
import ssl
from enum import Enum, auto

from holdfast.domain.addresses import IPAddress
from holdfast.domain.delivery import UNREAD

REFUSED = "The connection was refused."
CLOSED_EARLY = "The connection was closed before an answer came."
CLOSED_IN_HEADERS = "The connection was closed before the headers of the answer ended."
CLOSED_IN_TLS = "The connection was closed during the TLS handshake."
RESET_EARLY = "The connection was reset before an answer came."
RESET_IN_HEADERS = "The connection was reset before the headers of the answer ended."
SPOKE_FIRST = "The receiver sent data before it was asked."
NOT_HTTP = "The answer is not HTTP."
HEAD_NOT_HTTP = "The head of the answer is not valid HTTP."
HEADERS_TOO_LONG = "The headers of the answer are longer than 64 KiB."
NAME_UNKNOWN = "The host name does not exist."
NAME_WITHOUT_ADDRESS = "The host name has no address."
NAME_UNRESOLVED = "The host name could not be resolved."
NOT_ENCRYPTED = "The URL must begin with https://: http is for addresses in the allowed networks only."
OTHER_PEER = "The connection led to another address than the one that was checked."

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


def of_status(code: int) -> str | None:
    if 200 <= code < 300:
        return None
    if code in _REDIRECTS:
        return f"The receiver answered {code} and redirects are not followed."
    if code == 101:
        return "The receiver answered 101 and asks for another protocol."
    return f"The receiver answered {code}."


def of_address(address: IPAddress, words: str, *, is_literal: bool) -> str:
    subject = "The URL's host is" if is_literal else "The name resolves to"
    return f"{subject} {address}, which is {words}."


def of_connecting(error: OSError) -> str:
    return _CONNECTING.get(error.errno or 0) or f"The connection failed: {error.strerror or error}."


def of_tls(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _CERTIFICATE.get(error.verify_code) or f"The certificate is not valid: {error.verify_message}."
    if not isinstance(error, ssl.SSLError) or isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return CLOSED_IN_TLS
    if error.reason in _NOT_TLS:
        return "The receiver does not speak TLS."
    reason = (error.reason or "unknown").rpartition("_ALERT_")[2]
    return f"The TLS handshake failed: {reason.replace('_', ' ').lower()}."


class Phase(Enum):
    RESOLVING = auto()
    CONNECTING = auto()
    ENCRYPTING = auto()
    SIGNING = auto()
    ANSWERING = auto()


class Overdue:
    """The causes that name the deadline, made once."""

    def __init__(self, timeout_seconds: float) -> None:
        within = f"within {_in_words(timeout_seconds)}"
        self.causes = {
            Phase.RESOLVING: f"The host name could not be resolved {within}.",
            Phase.CONNECTING: f"No connection {within}.",
            Phase.ENCRYPTING: f"The TLS handshake did not end {within}.",
            Phase.SIGNING: UNREAD,
            Phase.ANSWERING: f"No answer {within}.",
        }
        self.in_headers = f"The headers of the answer did not end {within}."


def _in_words(seconds: float) -> str:
    if seconds == 1:
        return "one second"
    return "ten seconds" if seconds == 10 else f"{seconds:g} seconds"
