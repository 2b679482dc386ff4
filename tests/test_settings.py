"""Settings come from the environment, and nonsense stops the start with one sentence."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from holdfast.domain.holds import LONGEST_HOLD_SECONDS, LONGEST_RESERVATION_DAYS
from holdfast.settings import Settings, WrongSetting, check_setting_names

KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
PAYMENT_SECRET = "a secret of payments"
OTHER_KEY = "_-EyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="


def test_nothing_set_means_the_embedded_database_in_the_data_folder() -> None:
    settings = Settings.from_environment({})
    assert settings == Settings(
        database_url=None,
        data_dir=Path.cwd() / "data",
        public_url=None,
        trusted_proxies=(),
        hold_seconds=300.0,
        reservation_days=14.0,
        holds_per_visitor=3,
        holds_per_address=20,
        rehold_seconds=60.0,
        session_idle_minutes=120.0,
        session_hours=12.0,
        time_zone="Asia/Riyadh",
        rate_limit=0.0,
        public_rate_limit=50.0,
        event_retention_days=400.0,
        retry_first_gap_seconds=30.0,
        attempts=8,
        attempt_timeout_seconds=10.0,
        lease_seconds=None,
        delivery_retention_days=90.0,
        allowed_networks=(),
        encryption_keys=(),
        payment_url=None,
        payment_secret=None,
        demo_receiver=None,
        processes=1,
    )


def test_everything_set_is_read() -> None:
    settings = Settings.from_environment(
        {
            "HOLDFAST_DATABASE_URL": "postgresql://u:p@h1:5432,h2:5433/db?sslmode=require",
            "HOLDFAST_DATA_DIR": "/var/lib/holdfast",
            "HOLDFAST_DEMO_RECEIVER": "http://127.0.0.1:8001",
            "HOLDFAST_PUBLIC_URL": "https://units.example.com:8443",
            "HOLDFAST_TRUSTED_PROXIES": "10.0.0.0/8, 2001:db8::7",
            "HOLDFAST_CORS_ORIGINS": "https://www.Example.com:443, http://localhost:3000,",
            "HOLDFAST_HOLD_SECONDS": "0.5",
            "HOLDFAST_RESERVATION_DAYS": "7",
            "HOLDFAST_HOLDS_PER_VISITOR": "1",
            "HOLDFAST_HOLDS_PER_ADDRESS": "100",
            "HOLDFAST_REHOLD_SECONDS": "1.5",
            "HOLDFAST_SESSION_IDLE_MINUTES": "0.5",
            "HOLDFAST_SESSION_HOURS": "8",
            "HOLDFAST_TIME_ZONE": "Africa/Cairo",
            "HOLDFAST_RATE_LIMIT": "2.5",
            "HOLDFAST_PUBLIC_RATE_LIMIT": "20",
            "HOLDFAST_EVENT_RETENTION_DAYS": "0.5",
            "HOLDFAST_RETRY_FIRST_GAP_SECONDS": "0.25",
            "HOLDFAST_ATTEMPTS": "3",
            "HOLDFAST_ATTEMPT_TIMEOUT_SECONDS": "1.5",
            "HOLDFAST_LEASE_SECONDS": "2.5",
            "HOLDFAST_DELIVERY_RETENTION_DAYS": "7",
            "HOLDFAST_ALLOWED_NETWORKS": "127.0.0.0/8,::1",
            "HOLDFAST_ENCRYPTION_KEYS": f"{KEY}, {OTHER_KEY},",
            "HOLDFAST_PAYMENT_URL": "https://pay.example.com:8443/deposits",
            "HOLDFAST_PAYMENT_SECRET": PAYMENT_SECRET,
            "HOLDFAST_PROCESSES": "4",
        }
    )
    assert settings == Settings(
        database_url="postgresql://u:p@h1:5432,h2:5433/db?sslmode=require",
        data_dir=Path("/var/lib/holdfast"),
        public_url="https://units.example.com:8443",
        trusted_proxies=(ip_network("10.0.0.0/8"), ip_network("2001:db8::7/128")),
        cors_origins=("https://www.example.com", "http://localhost:3000"),
        hold_seconds=0.5,
        reservation_days=7.0,
        holds_per_visitor=1,
        holds_per_address=100,
        rehold_seconds=1.5,
        session_idle_minutes=0.5,
        session_hours=8.0,
        time_zone="Africa/Cairo",
        rate_limit=2.5,
        public_rate_limit=20.0,
        event_retention_days=0.5,
        retry_first_gap_seconds=0.25,
        attempts=3,
        attempt_timeout_seconds=1.5,
        lease_seconds=2.5,
        delivery_retention_days=7.0,
        allowed_networks=(ip_network("127.0.0.0/8"), ip_network("::1/128")),
        encryption_keys=(KEY, OTHER_KEY),
        payment_url="https://pay.example.com:8443/deposits",
        payment_secret=PAYMENT_SECRET,
        demo_receiver="http://127.0.0.1:8001",
        processes=4,
    )


def test_an_empty_value_counts_as_not_set() -> None:
    names = (name.upper() for name in Settings.model_fields)
    assert Settings.from_environment(
        {f"HOLDFAST_{name}": " " for name in names}
    ) == Settings.from_environment({})


def test_names_of_no_setting_are_left_alone() -> None:
    assert Settings.from_environment({"HOLDFAST_SOMETHING": "x", "RATE_LIMIT": "x"}).rate_limit == 0


def test_a_limit_of_zero_is_off() -> None:
    names = ("HOLDS_PER_VISITOR", "HOLDS_PER_ADDRESS", "REHOLD_SECONDS", "RATE_LIMIT", "PUBLIC_RATE_LIMIT")
    settings = Settings.from_environment({f"HOLDFAST_{name}": "0" for name in names})
    assert [getattr(settings, name.lower()) for name in names] == [0] * len(names)


@pytest.mark.parametrize(("name", "value"), [("HOLD_SECONDS", "604800"), ("RESERVATION_DAYS", "3650")])
def test_the_longest_durations_are_accepted(name: str, value: str) -> None:
    settings = Settings.from_environment({f"HOLDFAST_{name}": value})
    assert getattr(settings, name.lower()) == float(value)


@pytest.mark.parametrize(
    ("value", "networks"),
    [
        (",", []),
        ("192.0.2.1", ["192.0.2.1/32"]),
        ("192.0.2.0/24,,::1 ,", ["192.0.2.0/24", "::1/128"]),
        ("::ffff:192.0.2.0/120", ["192.0.2.0/24"]),
    ],
)
def test_proxies_are_addresses_and_networks(value: str, networks: list[str]) -> None:
    settings = Settings.from_environment({"HOLDFAST_TRUSTED_PROXIES": value})
    assert list(settings.trusted_proxies) == list(map(ip_network, networks))


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
        ("CORS_ORIGINS", "*"),
        ("CORS_ORIGINS", "null"),
        ("CORS_ORIGINS", "www.example.com"),
        ("CORS_ORIGINS", "https://www.example.com/"),
        ("CORS_ORIGINS", "https://*.example.com,ftp://example.com"),
        ("CORS_ORIGINS", "https://شقة.example"),
        ("TRUSTED_PROXIES", "proxy.example.com"),
        ("TRUSTED_PROXIES", "10.0.0.1/8"),
        ("TRUSTED_PROXIES", "10.0.0.0/33"),
        ("TRUSTED_PROXIES", "10.0.0.0/8 192.0.2.1"),
        ("HOLD_SECONDS", "0"),
        ("HOLD_SECONDS", "-1"),
        ("HOLD_SECONDS", "604800.1"),
        ("HOLD_SECONDS", "nan"),
        ("RESERVATION_DAYS", "0"),
        ("RESERVATION_DAYS", "3651"),
        ("HOLDS_PER_VISITOR", "-1"),
        ("HOLDS_PER_VISITOR", "1.5"),
        ("HOLDS_PER_ADDRESS", "many"),
        ("HOLDS_PER_ADDRESS", "9" * 5000),
        ("REHOLD_SECONDS", "-1"),
        ("REHOLD_SECONDS", "1e300"),
        ("SESSION_IDLE_MINUTES", "0"),
        ("SESSION_IDLE_MINUTES", "soon"),
        ("SESSION_HOURS", "-1"),
        ("SESSION_HOURS", "1e9"),
        ("TIME_ZONE", "Riyadh"),
        ("TIME_ZONE", "Asia"),
        ("TIME_ZONE", "../etc/passwd"),
        ("TIME_ZONE", "asia/riyadh"),
        ("PUBLIC_RATE_LIMIT", "-1"),
        ("PUBLIC_RATE_LIMIT", "inf"),
        ("RATE_LIMIT", "-1"),
        ("RATE_LIMIT", "many"),
        ("RATE_LIMIT", "nan"),
        ("RATE_LIMIT", "inf"),
        ("EVENT_RETENTION_DAYS", "0"),
        ("EVENT_RETENTION_DAYS", "-3"),
        ("EVENT_RETENTION_DAYS", "1e9"),
        ("RETRY_FIRST_GAP_SECONDS", "0"),
        ("RETRY_FIRST_GAP_SECONDS", "-30"),
        ("RETRY_FIRST_GAP_SECONDS", "86401"),
        ("RETRY_FIRST_GAP_SECONDS", "30s"),
        ("ATTEMPTS", "0"),
        ("ATTEMPTS", "31"),
        ("ATTEMPTS", "8.0"),
        ("ATTEMPT_TIMEOUT_SECONDS", "0"),
        ("ATTEMPT_TIMEOUT_SECONDS", "60.1"),
        ("ATTEMPT_TIMEOUT_SECONDS", "inf"),
        ("LEASE_SECONDS", "0"),
        ("LEASE_SECONDS", "601"),
        ("LEASE_SECONDS", "10.9"),
        ("LEASE_SECONDS", "long"),
        ("DELIVERY_RETENTION_DAYS", "0"),
        ("DELIVERY_RETENTION_DAYS", "36501"),
        ("ALLOWED_NETWORKS", "localhost"),
        ("ALLOWED_NETWORKS", "10.0.0.1/8"),
        ("ALLOWED_NETWORKS", "10.0.0.0/8;127.0.0.1"),
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


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("HOLDFAST_HOLD_SECONDS", LONGEST_HOLD_SECONDS),
        ("HOLDFAST_RESERVATION_DAYS", LONGEST_RESERVATION_DAYS),
    ],
)
def test_a_period_is_as_long_as_a_project_may_have_it_and_no_longer(name: str, most: int) -> None:
    Settings.from_environment({name: str(most)})
    with pytest.raises(WrongSetting):
        Settings.from_environment({name: str(most + 1)})


@pytest.mark.parametrize(("timeout", "lease"), [("10", "11"), ("1.5", "2.5"), ("60", "600")])
def test_a_lease_is_at_least_a_second_longer_than_an_attempt(timeout: str, lease: str) -> None:
    given = {"HOLDFAST_ATTEMPT_TIMEOUT_SECONDS": timeout, "HOLDFAST_LEASE_SECONDS": lease}
    assert Settings.from_environment(given).lease_seconds == float(lease)
    shorter = {**given, "HOLDFAST_LEASE_SECONDS": str(float(timeout) + 0.9)}
    with pytest.raises(WrongSetting) as refused:
        Settings.from_environment(shorter)
    assert str(refused.value).startswith("HOLDFAST_LEASE_SECONDS is ")


@pytest.mark.parametrize(
    "keys",
    ["hunter2", KEY[:-1], KEY[:-5] + "====", KEY + KEY, f"{KEY},hunter2", KEY.replace("M", "!"), "é" * 44],
)
def test_an_encryption_key_that_is_none_is_refused_and_no_key_is_shown(keys: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        Settings.from_environment({"HOLDFAST_ENCRYPTION_KEYS": keys})
    sentence = str(refused.value)
    assert sentence.startswith("HOLDFAST_ENCRYPTION_KEYS is '…', but must be ")
    assert sentence.endswith(".")
    assert not any(part in sentence for part in (KEY[:8], "hunter2", "é"))


def test_the_settings_do_not_show_their_keys() -> None:
    settings = Settings.from_environment({"HOLDFAST_ENCRYPTION_KEYS": KEY})
    assert KEY not in repr(settings)
    assert KEY not in str(settings)


def test_settings_cannot_be_changed() -> None:
    settings = Settings()
    with pytest.raises(ValueError):
        settings.processes = 2  # type: ignore[misc]
    assert settings.model_copy(update={"processes": 2}).processes == 2


def test_settings_made_by_hand_do_not_read_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_PROCESSES", "4")
    assert Settings().processes == 1


@pytest.mark.parametrize(
    ("misspelt", "known"),
    [
        ("HOLDFAST_HOLD_SECOND", "HOLDFAST_HOLD_SECONDS"),
        ("HOLDFAST_HODL_SECONDS", "HOLDFAST_HOLD_SECONDS"),
        ("HOLDFAST_DATABASEURL", "HOLDFAST_DATABASE_URL"),
        ("HOLDFAST_PROCESS", "HOLDFAST_PROCESSES"),
        ("HOLDFAST_KEYS", "HOLDFAST_KEY"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_right_one(misspelt: str, known: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        check_setting_names({misspelt: "x"})
    assert str(refused.value) == f"{misspelt} is not a setting; did you mean {known}?"


def test_other_unknown_names_are_warned_of_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    check_setting_names({"HOLDFAST_SOMETHING": "x", "HOLDFAST_COLOUR": "x", "PATH": "/bin"})
    assert caplog.messages == ["ignoring unknown settings: HOLDFAST_COLOUR, HOLDFAST_SOMETHING"]


@pytest.mark.parametrize(
    "name",
    [
        *(f"HOLDFAST_{name.upper()}" for name in Settings.model_fields),
        "HOLDFAST_URL",
        "HOLDFAST_KEY",
        "HOLDFAST_SECRET",
        "HOLDFAST_PORT",
        "HOLDFAST_PORT_8000_TCP_ADDR",
        "HOLDFAST_SERVICE_HOST",
    ],
)
def test_known_names_and_those_of_kubernetes_are_accepted(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    check_setting_names({name: "x"})
    assert not caplog.messages


def test_a_misspelt_name_without_a_value_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    check_setting_names({"HOLDFAST_HOLD_SECOND": " "})
    assert not caplog.messages
