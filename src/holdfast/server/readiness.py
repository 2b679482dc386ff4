"""Asks the service itself whether it is ready, through the socket that its users will use."""

import socket
import threading

_ANSWER_SECONDS = 5.0
_PAUSE_SECONDS = 0.05
_REQUEST = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def wait_until_ready(listener: socket.socket, give_up: threading.Event) -> bool:
    while not give_up.is_set():
        if _is_ready(listener):
            return True
        give_up.wait(_PAUSE_SECONDS)
    return False


def _is_ready(listener: socket.socket) -> bool:
    """The kernel takes the connection at once, so the answer comes as soon as a process serves."""
    try:
        with socket.socket(listener.family) as connection:
            connection.settimeout(_ANSWER_SECONDS)
            connection.connect(_reachable(listener.getsockname()))
            connection.sendall(_REQUEST)
            return connection.recv(64).startswith(b"HTTP/1.1 200 ")
    except OSError:
        return False


def _reachable(address: tuple[str, int]) -> tuple[str, int]:
    loopback = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - read, not bound
    return loopback.get(address[0], address[0]), address[1]
