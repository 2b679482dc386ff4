"""`make serve`, which is what the documents begin with."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.client import NO_TLS
from tests.support.make import ROOT, make_command, outside_of_make
from tests.support.server import STOP_SECONDS, environment

OF_OTHER_TESTS = ("HOLDFAST_ALLOWED_NETWORKS", "HOLDFAST_ENCRYPTION_KEYS")


@contextmanager
def made(data: Path) -> Iterator[dict[str, Any]]:
    """What it prints, with a port and a data directory of its own; it is stopped as Ctrl-C does."""
    variables = outside_of_make({**environment({}), **dict.fromkeys(OF_OTHER_TESTS, "")})
    command = make_command("serve", f"ARGS=--port 0 --json --data {data}")
    with (data.parent / "log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=log, start_new_session=True
        )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, (data.parent / "log").read_text()[-5000:]
        yield json.loads(first)
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=STOP_SECONDS)


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_make_serve_runs_a_server_with_the_demo_and_prints_a_key_that_opens_it(tmp_path: Path) -> None:
    with made(tmp_path / "data") as printed, httpx.Client(verify=NO_TLS, follow_redirects=True) as client:
        assert client.get(f"{printed['url']}/readyz").status_code == 200
        units = client.get(
            f"{printed['url']}/v1/integration/projects/narjis-heights/units",
            headers={"Authorization": f"Bearer {printed['key']}"},
        )
        assert len(units.json()["units"]) == 100
        assert client.get(printed["signIn"]["url"]).status_code == 200
