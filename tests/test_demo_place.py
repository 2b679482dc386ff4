"""The addresses of the demo's external systems, and what they share with Holdfast."""

import json
import socket

from holdfast.server.demo import SETTINGS, open_external_systems
from tests.support.ports import free_port

HOST = "127.0.0.1"


def test_it_is_on_the_next_port() -> None:
    port = free_port()
    with open_external_systems(HOST, port - 1, None, {}) as external:
        assert external.address == f"http://{HOST}:{port}"
        assert external.hook_url == f"http://{HOST}:{port}/hook"


def test_it_is_on_a_free_port_where_the_next_is_taken_or_none_was_named() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        for asked in (port - 1, 0, 65535):
            with open_external_systems(HOST, asked, None, {}) as external:
                assert external.listener.getsockname()[1] not in (0, port)


def test_people_find_it_beside_the_public_address_and_workers_on_this_machine() -> None:
    with open_external_systems("0.0.0.0", 0, "http://192.168.1.20:8000", {}) as external:
        port = external.listener.getsockname()[1]
        assert external.address == f"http://192.168.1.20:{port}"
        assert external.hook_url == f"http://127.0.0.1:{port}/hook"
        assert external.networks == ()
        assert external.holdfast_settings()["HOLDFAST_PAYMENT_URL"] == f"http://192.168.1.20:{port}/pay"


def test_its_payment_page_gives_way_to_another_and_to_https() -> None:
    named = {"HOLDFAST_PAYMENT_URL": "https://pay.example.com", "HOLDFAST_PAYMENT_SECRET": "x" * 16}
    with open_external_systems(HOST, 0, None, named) as external:
        assert external.holdfast_settings() == {}
    with open_external_systems(HOST, 0, "https://demo.example.com", {}) as external:
        assert external.holdfast_settings() == {}


def test_its_process_gets_no_settings_of_the_database() -> None:
    given = {"PATH": "/bin", "HOLDFAST_DATABASE_URL": "postgresql://h/d", "HOLDFAST_ENCRYPTION_KEYS": "k"}
    with open_external_systems(HOST, 0, None, given) as external:
        environment = external.environment(given, "hfs_x", "http://127.0.0.1:8000", "Asia/Riyadh")
    assert not [name for name in environment if name.startswith("HOLDFAST_")]
    assert environment["PATH"] == "/bin"
    assert json.loads(environment[SETTINGS])["hook_secret"] == "hfs_x"
