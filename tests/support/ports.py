"""Ports of programs that a test starts, and that do not say when they listen."""

import socket
import subprocess
import time

START_SECONDS = 120
LOOKS_AGAIN_SECONDS = 0.02


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


def wait_until_it_listens(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + START_SECONDS
    while not _listens(port):
        assert process.poll() is None, "it ended at once"
        assert time.monotonic() < until, "it does not listen"
        time.sleep(LOOKS_AGAIN_SECONDS)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), START_SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True
