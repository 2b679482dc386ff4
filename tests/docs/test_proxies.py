"""The reverse proxies that the documents show, run where they are installed."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.web.api.integration.units import BULK_BODY_LIMIT
from tests.docs.documents import OPERATIONS, block_beginning
from tests.support.client import NO_TLS
from tests.support.ports import free_port, wait_until_it_listens
from tests.support.programs import installed
from tests.support.receiver_certificates import authority
from tests.support.server import RunningServer

NGINX = block_beginning(OPERATIONS, "nginx", "upstream holdfast")
CADDY = block_beginning(OPERATIONS, "text", "sales.example.com {")
LARGEST = BULK_BODY_LIMIT // 1024**2
STOP_SECONDS = 60
# Whom nginx would otherwise become could not write into the folder of the test.
AS_ROOT = "user root;\n" if os.getuid() == 0 else ""
OF_NGINX = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
"""What nginx would otherwise write below its own folder."""


def test_proxies_let_the_largest_body_pass_and_keep_inside_what_needs_no_key() -> None:
    assert f"client_max_body_size {LARGEST}m;" in NGINX
    assert f"max_size {LARGEST}MiB" in CADDY
    assert "(metrics|healthz|readyz)" in NGINX
    assert "@inside path /metrics /healthz /readyz" in CADDY
    scraped = yaml.safe_load(block_beginning(OPERATIONS, "yaml", "scrape_configs:"))["scrape_configs"][0]
    targets = scraped["static_configs"][0]["targets"]
    assert re.findall(r"server (\S+);", NGINX) == targets, "Prometheus asks the machines behind the proxies"
    assert f"reverse_proxy {' '.join(targets)} {{" in CADDY


@pytest.mark.parametrize("program", ["nginx", "caddy"])
def test_a_proxy_passes_requests_on_and_keeps_the_rest_inside(
    program: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    installed(program)
    real_server = request.getfixturevalue("real_server")
    port = free_port()
    if program == "nginx":
        address, command = f"https://127.0.0.1:{port}", _nginx(real_server, port, tmp_path)
    else:
        address, command = f"http://127.0.0.1:{port}", _caddy(real_server, port, tmp_path)
    with _running(command, port, tmp_path):
        _is_a_proxy_of_holdfast(address, real_server)


def _nginx(server: RunningServer, port: int, folder: Path) -> list[str]:
    """The command that serves the site of the document, within what no document has to show."""
    site = _for_this_machine(NGINX, server).replace("listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;")
    made = authority().issue_cert("127.0.0.1")
    (folder / "certificate.key").write_bytes(made.private_key_pem.bytes())
    (folder / "certificate.pem").write_bytes(b"".join(part.bytes() for part in made.cert_chain_pems))
    site = site.replace("/etc/ssl/sales.example.com", str(folder / "certificate"))
    paths = "".join(f"{name}_temp_path {folder / name};\n" for name in OF_NGINX)
    main = f"{AS_ROOT}daemon off;\npid {folder / 'pid'};\nevents {{}}\n"
    whole = folder / "nginx.conf"
    whole.write_text(f"{main}http {{\naccess_log off;\n{paths}{site}\n}}")
    return ["nginx", "-c", str(whole), "-p", str(folder), "-e", str(folder / "errors")]


def _caddy(server: RunningServer, port: int, folder: Path) -> list[str]:
    """Without a certificate of its own making, which would be stored on this machine."""
    site = _for_this_machine(CADDY, server).replace("sales.example.com {", f"http://127.0.0.1:{port} {{")
    whole = folder / "Caddyfile"
    whole.write_text(f"{{\nadmin off\n}}\n{site}")
    return ["caddy", "run", "--config", str(whole), "--adapter", "caddyfile"]


def _for_this_machine(text: str, server: RunningServer) -> str:
    """Both machines are this one."""
    only = server.address.removeprefix("http://")
    return (
        text.replace("10.0.0.11:8000", only)
        .replace("    server 10.0.0.12:8000;\n", "")
        .replace(" 10.0.0.12:8000", "")
    )


def _is_a_proxy_of_holdfast(address: str, server: RunningServer) -> None:
    with httpx.Client(verify=False, trust_env=False) as client:
        answers = [
            client.get(address + path) for path in ("/openapi.json", "/metrics", "/healthz", "/readyz")
        ]
        of_holdfast = client.put(
            address + "/v1/integration/projects/x1/units", content=b" " * BULK_BODY_LIMIT
        )
    with httpx.Client(verify=NO_TLS, trust_env=False) as client:
        assert answers[0].json() == client.get(server.address + "/openapi.json").json()
    assert [answer.status_code for answer in answers] == [200, 404, 404, 404]
    assert of_holdfast.status_code == 401


@contextmanager
def _running(command: list[str], port: int, home: Path) -> Iterator[None]:
    quiet = subprocess.DEVNULL
    environment = {"PATH": os.environ["PATH"], "HOME": str(home)}
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet, env=environment)
    try:
        wait_until_it_listens(process, port)
        yield
    finally:
        process.terminate()
        process.wait(STOP_SECONDS)
