"""`holdfast serve`: the sockets, the database and the supervised processes."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

from holdfast.server.demo import ExternalSystems, open_external_systems
from holdfast.server.run_as import check_user, child_options
from holdfast.server.sockets import StartError, format_url, listen, open_listeners
from holdfast.server.supervisor import STOP_SIGNALS, Child, Supervisor, python_module
from holdfast.settings import LOOPBACK, Settings
from holdfast.storage.embedded.server import EmbeddedPostgres, check_exists, serving_alone, serving_embedded
from holdfast.storage.errors import EmbeddedPostgresError, WrongDatabase
from holdfast.storage.secrets import load_encryption_keys

OWNER_URL = "owner_url"
"""With the settings of `prepare`: the database's URL for the owner of the schema, if that is another role."""

# What the pools of the processes may open (see wiring), with room for commands.
_MIN_CONNECTIONS = 100
_CONNECTIONS_PER_WEB_PROCESS = 8
_OTHER_CONNECTIONS = 30

_log = logging.getLogger(__name__)


def serve(
    settings: Settings,
    host: str,
    port: int,
    demo: bool,
    may_migrate: bool,
    announce: Callable[[dict[str, Any]], None],
) -> None:
    """Return after a signal to stop, when everything is stopped that was started.

    ``announce`` is called when the service is ready, with its ``url`` and the results of the preparation.
    """
    has_service = settings.database_url is not None
    if not (has_service or may_migrate):
        check_exists(settings.data_dir)
    check_user(settings)
    systems = open_external_systems(host, port, settings.public_url, os.environ) if demo else nullcontext()
    if (own_port := settings.metrics_port) == port:
        raise StartError("HOLDFAST_METRICS_PORT must not be the port of --port.")
    # For this machine alone: the port is there to close `/metrics` to everybody else.
    metrics = listen("127.0.0.1", own_port, "HOLDFAST_METRICS_PORT") if own_port else nullcontext()
    with (
        _stop_on_signals(),
        nullcontext() if has_service else serving_alone(settings.data_dir),
        open_listeners(host, port, settings.processes) as listeners,
        metrics as metrics_listener,
        systems as external,
        _database(settings) as (url, embedded),
        # Private to this run: counters of an earlier one must not be added to this one's.
        tempfile.TemporaryDirectory(prefix="holdfast-metrics-", ignore_cleanup_errors=True) as metrics_folder,
    ):
        address = format_url(listeners[0], host)
        own = _child_settings(settings, url, address, external)
        # It goes to this process alone, which has ended before the others start.
        owner_url = embedded.owner_url if embedded is not None and may_migrate else ""
        result = {"url": address, **_prepare({**own, OWNER_URL: owner_url}, may_migrate, external)}
        options = child_options(settings, metrics_folder)
        children = [Child("work", own, options)]
        if external is not None:
            public_url, secret = own["HOLDFAST_PUBLIC_URL"], result.pop("receiverSecret")
            external_settings = external.settings(secret, public_url, settings.time_zone)
            children.append(Child("external", external_settings, options, [external.listener]))
            result["receiver"] = own["HOLDFAST_DEMO_RECEIVER"] = external.address
        for_metrics = [] if metrics_listener is None else [metrics_listener]
        webs = [
            Child(f"web {at}", own, options, [listener, *for_metrics])
            for at, listener in enumerate(listeners, 1)
        ]
        supervisor = Supervisor(
            listeners[0],
            [*webs, *children],
            on_ready=lambda: announce(result),
            on_tick=lambda: _restart_if_ended(embedded),
        )
        supervisor.run()


@contextmanager
def _stop_on_signals() -> Iterator[None]:
    """Let a signal that comes before the supervisor handles them unwind what was started so far, once."""

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


@contextmanager
def _database(settings: Settings) -> Iterator[tuple[str, EmbeddedPostgres | None]]:
    if settings.database_url is not None:
        yield settings.database_url, None
        return
    needed = settings.processes * _CONNECTIONS_PER_WEB_PROCESS + _OTHER_CONNECTIONS
    with serving_embedded(settings.data_dir, max(_MIN_CONNECTIONS, needed)) as server:
        yield server.url, server


def _child_settings(
    settings: Settings, database_url: str, address: str, external: ExternalSystems | None
) -> dict[str, str]:
    """Return the settings of the children. The demo's endpoints may be on this machine."""
    allowed = [*map(str, settings.allowed_networks)]
    demo_settings: dict[str, str] = {}
    if external is not None:
        allowed += [*map(str, LOOPBACK), *external.networks]
        demo_settings = external.holdfast_settings()
    return {
        **{name: value for name, value in os.environ.items() if name.startswith("HOLDFAST_")},
        **demo_settings,
        "HOLDFAST_DATABASE_URL": database_url,
        "HOLDFAST_DATA_DIR": str(settings.data_dir),
        "HOLDFAST_PUBLIC_URL": settings.public_url or address,
        "HOLDFAST_PROCESSES": str(settings.processes),
        "HOLDFAST_ENCRYPTION_KEYS": ",".join(load_encryption_keys(settings)),
        "HOLDFAST_ALLOWED_NETWORKS": ",".join(allowed),
    }


def _prepare(own: Mapping[str, str], may_migrate: bool, external: ExternalSystems | None) -> dict[str, Any]:
    arguments = ["migrate" if may_migrate else "check", *([] if external is None else [external.hook_url])]
    done = subprocess.run(
        python_module("prepare", *arguments),
        input=json.dumps(own).encode(),
        stdout=subprocess.PIPE,
        start_new_session=True,
        check=False,
    )
    if done.returncode != 0:
        raise StartError("Holdfast could not prepare its database; see the log above.")
    result: dict[str, Any] = json.loads(done.stdout)
    if "error" in result:
        raise (WrongDatabase if result["isWrongDatabase"] else StartError)(result["error"])
    return result


def _restart_if_ended(embedded: EmbeddedPostgres | None) -> None:
    try:
        if embedded is not None and embedded.restart_if_ended():
            _log.warning("the embedded PostgreSQL had ended and was started again")
    except (EmbeddedPostgresError, OSError):
        _log.exception("the embedded PostgreSQL had ended and could not be started again")
