"""Ports of programs that a test starts, and that do not say when they listen."""

import socket
import subprocess

from tests.support.server import PATIENCE_SECONDS, wait_until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def bind_shared(port: int = 0) -> socket.socket:
    """Bind to a port that others may bind too. A socket that never listens keeps it for those that do."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind(("127.0.0.1", port))
    return bound


def wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    wait_until(lambda: process.poll() is not None or _listens(port))
    assert process.poll() is None, "it ended at once"


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE_SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True
