"""The plain responses that the server gives itself, before a request reaches the application."""

from collections.abc import Iterable
from http import HTTPStatus
from random import getrandbits

_HEADERS = (
    b"content-type: text/plain\r\n"
    b"x-content-type-options: nosniff\r\n"
    b"x-request-id: %032x\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n"
)


def plain_response(status: int, default_headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return a whole response, after which the connection is closed."""
    text = HTTPStatus(status).phrase.encode()
    lines = b"".join(b"%b: %b\r\n" % header for header in default_headers)
    head = b"HTTP/1.1 %d %b\r\n" % (status, text) + lines + _HEADERS % (getrandbits(128), len(text))
    return head + b"\r\n" + text
