"""The user of the web processes and the worker when root starts `serve`."""

import logging
import os
import pwd
import subprocess
import sys
from contextlib import suppress
from typing import Any

from holdfast.settings import DEFAULT_RUN_AS, Settings, WrongSetting
from holdfast.storage.embedded.files import SOCKET_NAME, SYSTEM_USER, socket_folder, system_user
from holdfast.storage.errors import EmbeddedPostgresError

_MODULES = "holdfast.server.external, holdfast.server.web, holdfast.server.work"
_TRIAL = f"import os, sys, {_MODULES}; [os.stat(path) for path in sys.argv[1:]]"

_log = logging.getLogger(__name__)


def check_user(settings: Settings) -> None:
    """Raise WrongSetting if the processes must not run as the user that is set."""
    name, own, uid, owners, wrong = settings.run_as, os.geteuid(), None, {0}, ""
    if own == 0 and settings.database_url is None:
        folders = (settings.data_dir, settings.data_dir / "postgres")
        owners |= {folder.stat().st_uid for folder in folders if folder.exists()}
    with suppress(KeyError):
        uid = pwd.getpwnam(name).pw_uid
    if name != DEFAULT_RUN_AS and own not in (0, uid):
        wrong = "only root can run processes as another user"
    elif name != DEFAULT_RUN_AS and uid is None:
        wrong = "there is no such user on this machine"
    elif own == 0 and (name == SYSTEM_USER or uid in owners):
        wrong = "must be neither root nor the user of PostgreSQL or of the data directory"
    if wrong:
        raise WrongSetting(f"HOLDFAST_RUN_AS is {name!r}, but {wrong}.")


def child_options(settings: Settings, metrics: str) -> dict[str, Any]:
    """Return the options of Popen for the children, which write into the folder of the metrics.

    They stay root where their user cannot read what is installed here, or cannot reach the socket of the
    embedded database: no folder is opened for them.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    environment["PROMETHEUS_MULTIPROC_DIR"] = metrics
    as_started: dict[str, Any] = {"env": environment}
    if os.geteuid() != 0:
        return as_started
    try:
        name, _, uid, gid, _, home, _ = system_user(settings.run_as)
        options: dict[str, Any] = {"user": uid, "group": gid, "extra_groups": os.getgrouplist(name, gid)}
        options["env"] = {**environment, "HOME": home, "USER": name, "LOGNAME": name}
        os.chown(metrics, uid, gid)
        socket = [] if settings.database_url else [socket_folder(settings.data_dir) / SOCKET_NAME]
        command = [sys.executable, "-P", "-c", _TRIAL, *map(str, socket)]
        subprocess.run(command, capture_output=True, check=True, text=True, **options)
        return options
    except (OSError, subprocess.CalledProcessError, EmbeddedPostgresError) as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().rpartition("\n")[2]
    text = "web and worker stay root: %s cannot run Holdfast here (%s); install it where others can read it"
    _log.warning(text, settings.run_as, reason)
    os.chown(metrics, 0, 0)
    return as_started
