"""Requests that no well-behaved client would send, byte for byte."""

import socket
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPResponse
from urllib.parse import urlsplit


@dataclass(frozen=True)
class RawResponse:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def request_head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: holdfast.test", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunked(body: bytes, size: int = 65_536) -> bytes:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def exchange(address: str, request: bytes) -> RawResponse:
    with open_socket(address) as connection:
        with suppress(OSError):  # An early answer may close the connection before all is sent.
            connection.sendall(request)
        return _read_response(connection)


def hang_up(address: str, request: bytes) -> None:
    """Send the whole request and leave without listening."""
    with open_socket(address) as connection:
        connection.sendall(request)


def open_socket(address: str) -> socket.socket:
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    return socket.create_connection((parts.hostname, parts.port), timeout=60)


def _read_response(connection: socket.socket) -> RawResponse:
    response = HTTPResponse(connection)
    try:
        response.begin()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return RawResponse(response.status, headers, response.read())
    finally:
        response.close()
