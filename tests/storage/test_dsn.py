"""The hosts of a database URL."""

import pytest

from holdfast.storage.database import parse_hosts


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("postgresql://h/db", [("h", 5432)]),
        ("postgres://u:p@h:5433/db", [("h", 5433)]),
        ("postgresql://u@h1:1,h2:2/db", [("h1", 1), ("h2", 2)]),
        ("postgresql://us%40er:p%40s%2Cs%3A@h1,h2/db?sslmode=require", [("h1", 5432), ("h2", 5432)]),
        ("postgresql://u@h1:1,h2/db?port=6", [("h1", 1), ("h2", 6)]),
        ("postgresql://h1,h2", [("h1", 5432), ("h2", 5432)]),
        ("postgresql://u@[::1]:5433,[2001:db8::2]/db", [("::1", 5433), ("2001:db8::2", 5432)]),
        ("postgresql://u@/db?host=/a%20b/c&port=5433", [("/a b/c", 5433)]),
        ("postgresql:///db?host=/s", [("/s", 5432)]),
        ("postgresql://u@%2Frun%2Fpg:5433,h2/db", [("/run/pg", 5433), ("h2", 5432)]),
        ("postgresql://u@/db?host=h1,/s,h3&port=1,2,3", [("h1", 1), ("/s", 2), ("h3", 3)]),
        ("postgresql://u@/db?host=h1,h2,h3&port=1,,3", [("h1", 1), ("h2", 5432), ("h3", 3)]),
        ("postgresql:///db", [(None, None)]),
    ],
)
def test_hosts_are_read_as_libpq_reads_them(url: str, hosts: list[tuple[str | None, int | None]]) -> None:
    assert parse_hosts(url) == hosts


def test_the_default_port_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "6543")
    assert parse_hosts("postgresql://h1,h2:1/db") == [("h1", 6543), ("h2", 1)]
