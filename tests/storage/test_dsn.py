"""One URL with several hosts is several URLs with one host each."""

import pytest

from holdfast.storage.database import split_hosts


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://h/db", ["postgresql://h/db"]),
        ("postgres://u:p@h:5433/db", ["postgres://u:p@h:5433/db"]),
        ("postgresql://u@h1:1,h2:2/db", ["postgresql://u@h1:1/db", "postgresql://u@h2:2/db"]),
        ("postgresql://u@h1,h2/db", ["postgresql://u@h1/db", "postgresql://u@h2/db"]),
        ("postgresql://u@h1:1,h2/db?port=6", ["postgresql://u@h1:1/db", "postgresql://u@h2:6/db"]),
        ("postgresql://h1,h2", ["postgresql://h1", "postgresql://h2"]),
    ],
)
def test_every_host_gets_a_url_of_its_own(url: str, expected: list[str]) -> None:
    assert split_hosts(url) == expected


def test_a_password_and_the_options_go_to_every_host() -> None:
    url = "postgresql://us%40er:p%40s%2Cs%3A@h1,h2/d%20b?sslmode=require&application_name=a%20b"
    assert split_hosts(url) == [
        "postgresql://us%40er:p%40s%2Cs%3A@h1/d%20b?sslmode=require&application_name=a%20b",
        "postgresql://us%40er:p%40s%2Cs%3A@h2/d%20b?sslmode=require&application_name=a%20b",
    ]


def test_ipv6_addresses_keep_their_brackets() -> None:
    assert split_hosts("postgresql://u@[::1]:5433,[2001:db8::2]/db") == [
        "postgresql://u@[::1]:5433/db",
        "postgresql://u@[2001:db8::2]/db",
    ]


def test_sockets_are_named_in_the_query() -> None:
    assert split_hosts("postgresql://u@/db?host=/a%20b/c&port=5433") == [
        "postgresql://u@/db?host=/a%20b/c&port=5433"
    ]
    assert split_hosts("postgresql:///db?host=/s") == ["postgresql:///db?host=/s"]


def test_sockets_may_stand_percent_encoded_in_the_authority() -> None:
    assert split_hosts("postgresql://u@%2Frun%2Fpg:5433,h2/db") == [
        "postgresql://u@/db?host=/run/pg&port=5433",
        "postgresql://u@h2/db",
    ]


def test_hosts_in_the_query_take_the_ports_in_their_order() -> None:
    assert split_hosts("postgresql://u@/db?host=h1,/s,h3&port=1,2,3") == [
        "postgresql://u@h1:1/db",
        "postgresql://u@/db?host=/s&port=2",
        "postgresql://u@h3:3/db",
    ]


def test_a_url_without_a_host_is_left_as_it_is() -> None:
    assert split_hosts("postgresql:///db") == ["postgresql:///db"]
