"""Who may start and stop the embedded server: commands, and the one `serve` of a data directory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.storage.embedded.locks import FileLock
from holdfast.storage.embedded.server import EmbeddedPostgres, make_data_dir
from holdfast.storage.refused import EmbeddedRefused

_PATIENCE_WITH_COMMANDS_SECONDS = 5.0


@contextmanager
def using_embedded(data_dir: Path) -> Iterator[str]:
    """For a command: the URL of the server, which is running for as long as the block lasts."""
    server = EmbeddedPostgres(data_dir)
    url = server.start()
    try:
        yield url
    finally:
        server.leave()


@contextmanager
def serving_alone(data_dir: Path) -> Iterator[None]:
    """One `serve` at a time on a data directory."""
    make_data_dir(data_dir)
    with FileLock(data_dir / ".serve.lock") as lock:
        if not lock.try_exclusive():
            raise EmbeddedRefused(f"`holdfast serve` is already running on {data_dir}; stop it first.")
        yield


@contextmanager
def using_embedded_alone(data_dir: Path) -> Iterator[str]:
    """For a command that must not be disturbed: whoever comes meanwhile waits for its end."""
    with serving_alone(data_dir):
        server = EmbeddedPostgres(data_dir)
        url = server.start()
        try:
            if not server.is_alone():
                raise EmbeddedRefused(f"Another command is using {data_dir}; end it first.")
            yield url
        finally:
            server.leave()


@contextmanager
def serving_embedded(data_dir: Path, connections: int) -> Iterator[EmbeddedPostgres]:
    """For `serve`: the server is this process's own, and stops with it even if it was running before."""
    server = EmbeddedPostgres(data_dir, extra_settings={"max_connections": str(connections)})
    server.start()
    try:
        yield server
    finally:
        server.stop(_PATIENCE_WITH_COMMANDS_SECONDS)
