"""Settings come from the environment, and nonsense stops the start with one sentence."""

from pathlib import Path

import pytest

from holdfast.settings import Settings, WrongSetting


def test_nothing_set_means_the_embedded_database_in_the_data_folder() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings(
        database_url=None,
        data_dir=Path.cwd() / "data",
        public_url=None,
        rate_limit=0.0,
        event_retention_days=400.0,
        processes=1,
    )


def test_everything_set_is_read() -> None:
    settings = Settings.from_environment(
        {
            "HOLDFAST_DATABASE_URL": "postgresql://u:p@h1:5432,h2:5433/db?sslmode=require",
            "HOLDFAST_DATA_DIR": "/var/lib/holdfast",
            "HOLDFAST_PUBLIC_URL": "https://units.example.com:8443",
            "HOLDFAST_RATE_LIMIT": "2.5",
            "HOLDFAST_EVENT_RETENTION_DAYS": "0.5",
            "HOLDFAST_PROCESSES": "4",
        }
    )
    assert settings == Settings(
        database_url="postgresql://u:p@h1:5432,h2:5433/db?sslmode=require",
        data_dir=Path("/var/lib/holdfast"),
        public_url="https://units.example.com:8443",
        rate_limit=2.5,
        event_retention_days=0.5,
        processes=4,
    )


def test_an_empty_value_counts_as_not_set() -> None:
    names = ("DATABASE_URL", "DATA_DIR", "PUBLIC_URL", "RATE_LIMIT", "EVENT_RETENTION_DAYS", "PROCESSES")
    assert Settings.from_environment(
        {f"HOLDFAST_{name}": " " for name in names}
    ) == Settings.from_environment({})


def test_names_of_no_setting_are_left_alone() -> None:
    assert Settings.from_environment({"HOLDFAST_SOMETHING": "x", "RATE_LIMIT": "x"}).rate_limit == 0


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/db",
        "postgres://u:p%40ss@h/db",
        "postgresql://u@[::1]:5432,h2/db",
        "postgresql://u@/db?host=/var/run/postgresql",
        "postgresql://u@/db?host=h1,h2&port=1,2",
        "postgresql:///db",
    ],
)
def test_database_urls_of_every_form_are_accepted(url: str) -> None:
    assert Settings.from_environment({"HOLDFAST_DATABASE_URL": url}).database_url == url


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://h/db"),
        ("DATABASE_URL", "h/db"),
        ("DATABASE_URL", "postgresql:h"),
        ("DATABASE_URL", "postgresql://h:port/db"),
        ("DATABASE_URL", "postgresql://h:99999/db"),
        ("DATABASE_URL", "postgresql://h1:1,h2:0/db"),
        ("DATABASE_URL", "postgresql://[::1/db"),
        ("DATABASE_URL", "postgresql://u@/db?host=h&port=x"),
        ("DATA_DIR", __file__),
        ("PUBLIC_URL", "units.example.com"),
        ("PUBLIC_URL", "ftp://units.example.com"),
        ("PUBLIC_URL", "https://units.example.com/"),
        ("PUBLIC_URL", "https://units.example.com/path"),
        ("PUBLIC_URL", "https://user@units.example.com"),
        ("PUBLIC_URL", "https://"),
        ("PUBLIC_URL", "https://units.example.com:port"),
        ("RATE_LIMIT", "-1"),
        ("RATE_LIMIT", "many"),
        ("RATE_LIMIT", "nan"),
        ("RATE_LIMIT", "inf"),
        ("EVENT_RETENTION_DAYS", "0"),
        ("EVENT_RETENTION_DAYS", "-3"),
        ("EVENT_RETENTION_DAYS", "1e9"),
        ("PROCESSES", "0"),
        ("PROCESSES", "1.5"),
        ("PROCESSES", "many"),
    ],
)
def test_nonsense_is_refused_with_the_name_the_value_and_what_is_accepted(name: str, value: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        Settings.from_environment({f"HOLDFAST_{name}": value})
    sentence = str(refused.value)
    assert sentence.startswith(f"HOLDFAST_{name} is '{value}', but must be ")
    assert sentence.endswith(".")
    assert "\n" not in sentence


def test_a_password_is_not_repeated_in_the_sentence() -> None:
    with pytest.raises(WrongSetting) as refused:
        Settings.from_environment({"HOLDFAST_DATABASE_URL": "postgresql://user:hunter2@h:port/db"})
    assert "hunter2" not in str(refused.value)
