"""Why Holdfast did not start."""

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress


class StartError(Exception):
    """The text is one sentence for the person who started Holdfast."""


# The sockets of the web processes. They are bound before anything else is started.
#
# Each process has one of its own on the same port, and the kernel shares the connections out: on one
# socket for all, whoever wakes first takes every connection that waits. The supervisor keeps them open,
# so that connections for a process that died wait for its successor.

BACKLOG = 2048

_HIGHEST_PORT = 65535

# The web processes of a killed supervisor need a moment to notice and to leave the port.
_PATIENCE_SECONDS = 1.0
_POLL_SECONDS = 0.05


@contextmanager
def listening(host: str, port: int, count: int) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        # Alone on the port first: sockets that share it would share it with a stranger's as well.
        first = stack.enter_context(listen(host, port))
        if count == 1:
            yield [first]
            return
        port = first.getsockname()[1]
        first.close()
        yield [stack.enter_context(_bind(host, port, shared=True)) for _ in range(count)]


def listen(host: str, port: int) -> socket.socket:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return _bind(host, port)
        except OSError as failure:
            if failure.errno != errno.EADDRINUSE or time.monotonic() > give_up_at:
                raise StartError(_explain(host, port, failure)) from None
            time.sleep(_POLL_SECONDS)


def listen_beside(host: str, port: int) -> socket.socket:
    """On the port after that one; on any other where it is taken, or where none was asked for."""
    if 0 < port < _HIGHEST_PORT:
        with suppress(StartError):
            return listen(host, port + 1)
    return listen(host, 0)


def address_of(listener: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def _bind(host: str, port: int, *, shared: bool = False) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError:
        raise StartError(f"{host!r} is not a host name or an IP address.") from None
    family, kind, protocol, _, address = found[0]
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


def _explain(host: str, port: int, failure: OSError) -> str:
    if failure.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is taken by another program; choose one with --port."
    return f"Holdfast cannot listen on {host}, port {port}: {failure.strerror}."
