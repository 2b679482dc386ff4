"""How the supervisor tells a process that hangs from one that starts slowly, and how it is told."""

import socket
import subprocess
import sys

from holdfast.server.supervisor import Child, Supervisor

# More than the socket has room for, none of which is read.
MANY_HEARTBEATS = """
import asyncio
from holdfast.server.process import read_settings, send_heartbeats

async def main():
    for _ in range(5_000):
        send_heartbeats()
    print(settings, flush=True)

settings = read_settings()
asyncio.run(main())
"""


def test_a_process_hangs_ten_seconds_after_its_last_heartbeat_and_has_a_minute_for_its_first() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        child = Child("web 1", {}, {}, stdin=ours)
        assert not child.is_hung(59.9)
        assert child.is_hung(0.2)
        theirs.send(b".")
        assert not child.is_hung(0)
        assert not child.is_hung(9.9)
        assert child.is_hung(0.2)
        # While the supervisor was stopped, it sent some.
        theirs.send(b"." * 20)
        assert not child.is_hung(1000)
        assert not child.is_hung(9.9)


def test_processes_that_were_stopped_together_with_the_supervisor_are_not_replaced() -> None:
    """As when a container is paused: none of them has sent anything meanwhile."""
    (ours, theirs), listener = socket.socketpair(), socket.socket()
    with ours, theirs, listener, subprocess.Popen(["sleep", "600"]) as process:
        child = Child("web 1", {}, {}, stdin=ours, process=process, silent_seconds=0.0)
        supervisor = Supervisor(listener, [child], on_ready=lambda: None, on_tick=lambda: None)
        for _ in range(10):
            supervisor._checked_at -= 3600
            supervisor._check_children()
        assert process.poll() is None
        assert 0 < child.silent_seconds < 10
        process.kill()


def test_heartbeats_that_nobody_reads_do_not_block_the_process() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(b'{"a": "setting"}\n')
        done = subprocess.run(
            [sys.executable, "-c", MANY_HEARTBEATS], stdin=theirs.fileno(), capture_output=True
        )
        assert done.stdout == b"{'a': 'setting'}\n", done.stderr
