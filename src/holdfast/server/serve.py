"""Everything that one `serve` is: a socket, a database, and the processes on them."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.server.demo import DemoWorld, demo_world
from holdfast.server.sockets import StartError, address_of, listening
from holdfast.server.supervisor import STOP_SIGNALS, Companion, Supervisor, python_module
from holdfast.settings import LOOPBACK, Settings
from holdfast.storage.embedded import EmbeddedPostgres, EmbeddedPostgresError, serving_alone, serving_embedded
from holdfast.storage.secrets import load_encryption_keys

# What the pools of the processes may open (see wiring), with room for commands.
_CONNECTIONS = 100
_OF_A_WEB_PROCESS = 8
_OF_ALL_OTHERS = 30

_log = logging.getLogger(__name__)


class Served(NamedTuple):
    address: str
    setup_url: str | None
    """Where the first admin is made, while there is no staff."""
    demo: Demo | None


class Demo(NamedTuple):
    key: str
    sign_in: Mapping[str, str]
    """Address, e-mail address, password."""
    example: Mapping[str, Any] | None
    """The path and the body of a PUT that works, if the demo's project is there."""
    project: str | None
    """Where buyers see that project."""
    receiver: str
    """Where webhooks can be seen as they land."""


def serve(settings: Settings, host: str, port: int, demo: bool, announce: Callable[[Served], None]) -> None:
    """Returns after a signal to stop, with everything stopped that was started."""
    with (
        _stopping_cleanly(),
        _alone(settings),
        listening(host, port, settings.processes) as listeners,
        _world(settings, host, port, demo) as world,
        _database(settings) as (url, embedded),
    ):
        address = address_of(listeners[0], host)
        environment = _environment(settings, url, address, world)
        answer = _prepare(environment, world)
        with _metrics_folder() as metrics:
            supervisor = Supervisor(
                listeners,
                {**environment, **_tour(answer, world), "PROMETHEUS_MULTIPROC_DIR": str(metrics)},
                on_ready=lambda: announce(_served(address, answer, world)),
                on_tick=lambda: _keep_up(embedded),
                companions=_companions(settings, environment, answer, world),
            )
            supervisor.run()


def _served(address: str, answer: Mapping[str, Any], world: DemoWorld | None) -> Served:
    demo = None
    if world is not None:
        demo = Demo(answer["key"], answer["signIn"], answer["example"], answer["project"], world.address)
    return Served(address, answer.get("setupUrl"), demo)


def _world(settings: Settings, host: str, port: int, demo: bool) -> AbstractContextManager[DemoWorld | None]:
    return demo_world(host, port, settings.public_url, os.environ) if demo else nullcontext()


def _tour(answer: Mapping[str, Any], world: DemoWorld | None) -> dict[str, str]:
    """The first page shows what there is to try where the demo's project is there to try it on."""
    if world is None or answer["project"] is None:
        return {}
    return {"HOLDFAST_DEMO_RECEIVER": world.address}


def _companions(
    settings: Settings, environment: Mapping[str, str], answer: Mapping[str, Any], world: DemoWorld | None
) -> list[Companion]:
    if world is None:
        return []
    public_url = environment["HOLDFAST_PUBLIC_URL"]
    own = world.environment(os.environ, answer["receiverSecret"], public_url, settings.time_zone)
    return [Companion("demo_world", world.listener, own)]


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
    """A signal before the supervisor is there to note it unwinds what was started so far, once."""

    def unwind(*_: object) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, unwind)
    try:
        yield
    except KeyboardInterrupt:
        _log.info("stopped before it was ready")


def _alone(settings: Settings) -> AbstractContextManager[None]:
    return nullcontext() if settings.database_url is not None else serving_alone(settings.data_dir)


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[str, EmbeddedPostgres | None]]:
    if settings.database_url is not None:
        yield settings.database_url, None
        return
    connections = max(_CONNECTIONS, settings.processes * _OF_A_WEB_PROCESS + _OF_ALL_OTHERS)
    with serving_embedded(settings.data_dir, connections) as server:
        yield server.url, server


def _environment(
    settings: Settings, database_url: str, address: str, world: DemoWorld | None
) -> dict[str, str]:
    """The demo's endpoints may be on this machine."""
    own = () if world is None else (*LOOPBACK, *world.own_networks)
    allowed = (*settings.allowed_networks, *own)
    return {
        **os.environ,
        **({} if world is None else world.settings()),
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_DATA_DIR": str(settings.data_dir),
        "HOLDFAST_PUBLIC_URL": settings.public_url or address,
        "HOLDFAST_PROCESSES": str(settings.processes),
        "HOLDFAST_ENCRYPTION_KEYS": ",".join(load_encryption_keys(settings)),
        "HOLDFAST_ALLOWED_NETWORKS": ",".join(map(str, allowed)),
    }


def _prepare(environment: Mapping[str, str], world: DemoWorld | None) -> dict[str, Any]:
    result = subprocess.run(
        python_module("prepare", *([] if world is None else ["--demo", world.hook])),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=False,
    )
    if result.returncode != 0:
        raise StartError("Holdfast could not prepare its database; see the log above.")
    answer: dict[str, Any] = json.loads(result.stdout)
    if "refusal" in answer:
        raise StartError(answer["refusal"])
    return answer


@contextmanager
def _metrics_folder() -> Iterator[Path]:
    """Private to this run: counters of an earlier one must not be added to this one's."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-metrics-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _keep_up(embedded: EmbeddedPostgres | None) -> None:
    if embedded is None:
        return
    try:
        if embedded.keep_up():
            _log.warning("the embedded PostgreSQL had ended and was started again")
    except (EmbeddedPostgresError, OSError):
        _log.exception("the embedded PostgreSQL had ended and could not be started again")
