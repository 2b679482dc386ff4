"""Where the demo's world outside is, and what it shares with Holdfast."""

import socket

from holdfast.server.demo import demo_world
from tests.support.listening import free_port

HOST = "127.0.0.1"


def test_it_is_on_the_next_port() -> None:
    port = free_port()
    with demo_world(HOST, port - 1, None, {}) as world:
        assert world.address == f"http://{HOST}:{port}"
        assert world.hook == f"http://{HOST}:{port}/hook"


def test_it_is_on_a_free_port_where_the_next_is_taken_or_none_was_named() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        for asked in (port - 1, 0, 65535):
            with demo_world(HOST, asked, None, {}) as world:
                assert world.listener.getsockname()[1] not in (0, port)


def test_people_find_it_beside_the_public_address_and_workers_on_this_machine() -> None:
    with demo_world("0.0.0.0", 0, "http://192.168.1.20:8000", {}) as world:
        port = world.listener.getsockname()[1]
        assert world.address == f"http://192.168.1.20:{port}"
        assert world.hook == f"http://127.0.0.1:{port}/hook"
        assert world.own_networks == ()
        assert world.settings()["HOLDFAST_PAYMENT_URL"] == f"http://192.168.1.20:{port}/pay"


def test_its_payment_page_gives_way_to_another_and_to_https() -> None:
    named = {"HOLDFAST_PAYMENT_URL": "https://pay.example.com", "HOLDFAST_PAYMENT_SECRET": "x" * 16}
    with demo_world(HOST, 0, None, named) as world:
        assert world.settings() == {}
    with demo_world(HOST, 0, "https://demo.example.com", {}) as world:
        assert world.settings() == {}


def test_its_process_is_told_nothing_of_the_database() -> None:
    given = {"PATH": "/bin", "HOLDFAST_DATABASE_URL": "postgresql://h/d", "HOLDFAST_ENCRYPTION_KEYS": "k"}
    with demo_world(HOST, 0, None, given) as world:
        told = world.environment(given, "hfs_x", "http://127.0.0.1:8000", "Asia/Riyadh")
    assert not [name for name in told if name.startswith("HOLDFAST_")]
    assert told["PATH"] == "/bin"
    assert told["DEMO_HOOK_SECRET"] == "hfs_x"
