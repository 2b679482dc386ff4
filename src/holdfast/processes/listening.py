"""The socket that all web processes share. It is bound before anything else is started."""

import errno
import socket
import time

from holdfast.processes.refused import StartRefused

BACKLOG = 2048

# The web processes of a killed supervisor need a moment to notice and to leave the port.
_PATIENCE_SECONDS = 1.0
_POLL_SECONDS = 0.05


def listen(host: str, port: int) -> socket.socket:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            return _bind(host, port)
        except OSError as failure:
            if failure.errno != errno.EADDRINUSE or time.monotonic() > give_up_at:
                raise StartRefused(_explain(host, port, failure)) from None
            time.sleep(_POLL_SECONDS)


def address_of(listener: socket.socket, host: str) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}"


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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
