"""The listening sockets of the web processes, which are bound before anything else is started.

Each process has one of its own on the same port, and the kernel shares the connections out: on one socket
for all, whoever wakes first takes every connection that waits. The supervisor keeps them open, so that
connections for a process that died wait for its successor.
"""

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

BACKLOG = 2048

_HIGHEST_PORT = 65535
# The web processes of a killed supervisor take a while to notice and to leave the port.
_PATIENCE_SECONDS = 1.0
_POLL_SECONDS = 0.05


class StartError(Exception):
    """Holdfast did not start. The text is one sentence for the person who started it."""


@contextmanager
def open_listeners(host: str, port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        # Alone on the port first: sockets that share it would share it with a stranger's as well.
        first = stack.enter_context(listen(host, port))
        if count == 1:
            yield [first]
            return
        port = first.getsockname()[1]
        first.close()
        yield [stack.enter_context(_bind(host, port, shared=True)) for _ in range(count)]


def listen(host: str, port: int, setting: str = "--port") -> socket.socket:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return _bind(host, port)
        except OSError as error:
            sentence = f"Holdfast cannot listen on {host}, port {port}: {error.strerror}."
            is_taken = error.errno == errno.EADDRINUSE
            if is_taken:
                sentence = f"Port {port} on {host} is taken by another program; choose one with {setting}."
            if not is_taken or time.monotonic() > give_up_at:
                raise StartError(sentence) from None
            time.sleep(_POLL_SECONDS)


def listen_beside(host: str, port: int) -> socket.socket:
    """Listen on the port after that one, or on any other if it is taken or no port was given."""
    if 0 < port < _HIGHEST_PORT:
        with suppress(StartError):
            return listen(host, port + 1)
    return listen(host, 0)


def format_url(listener: socket.socket, host: str) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"


def _bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise StartError(f"{host!r} is not a host name or an IP address.") from None
    family, kind, protocol, _, address = addresses[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
