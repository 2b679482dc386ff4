"""Settings come from the environment, and nonsense stops the start with one sentence."""

import re
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from holdfast.settings import Settings, WrongSetting, check_setting_names

KEY = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
OTHER_KEY = "_-EyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="
SECRET = "a secret of payments"
METRICS_TOKEN = "a-Token.of_metrics~+/="
PAYMENT_PAGE = "https://pay.example.com"

DEFAULTS: dict[str, object] = {
    "database_url": None, "data_dir": Path.cwd() / "data", "public_url": None, "trusted_proxies": (),
    "cors_origins": (), "hold_seconds": 300.0, "reservation_days": 14.0, "holds_per_visitor": 3,
    "holds_per_address": 20, "holds_share_per_network": 20, "rehold_seconds": 60.0,
    "session_idle_minutes": 120.0, "session_hours": 12.0, "second_factor_roles": (),
    "time_zone": "Asia/Riyadh", "rate_limit": 0.0, "public_rate_limit": 50.0, "connections_per_address": 1000,
    "wrong_keys_per_minute": 20,
    "event_retention_days": 400.0, "retry_first_gap_seconds": 30.0, "attempts": 8, "lease_seconds": None,
    "attempt_timeout_seconds": 10.0, "delivery_retention_days": 90.0, "allowed_networks": (),
    "lapsed_hold_retention_days": None, "audit_retention_days": None,
    "encryption_keys": (), "payment_url": None, "payment_secret": None, "demo_receiver": None, "processes": 1,
    "hsts_subdomains": False, "metrics_token": None, "metrics_port": None,
    "smtp_url": None, "mail_from": None, "run_as": "holdfast-web",
}  # fmt: skip
DATABASE_URL = "postgresql://u:p@h1:5432,h2:5433/db?sslmode=require"
NUMBERS = {
    "hold_seconds": 0.5, "reservation_days": 7, "holds_per_visitor": 1, "holds_per_address": 100,
    "holds_share_per_network": 5,
    "rehold_seconds": 1.5, "session_idle_minutes": 0.5, "session_hours": 8, "rate_limit": 2.5,
    "public_rate_limit": 20, "connections_per_address": 5, "wrong_keys_per_minute": 3,
    "event_retention_days": 0.5, "attempts": 3,
    "retry_first_gap_seconds": 0.25, "attempt_timeout_seconds": 1.5, "lease_seconds": 2.5,
    "delivery_retention_days": 7, "lapsed_hold_retention_days": 30.5, "audit_retention_days": 0.5,
    "processes": 4, "metrics_port": 65535,
}  # fmt: skip
# What is set, and what is read from it.
READ: dict[str, tuple[str, object]] = {
    "database_url": (DATABASE_URL, DATABASE_URL),
    "data_dir": ("/var/lib/holdfast", Path("/var/lib/holdfast")),
    "demo_receiver": ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
    "public_url": ("https://units.example.com:8443", "https://units.example.com:8443"),
    "trusted_proxies": ("10.0.0.0/8, 2001:db8::7", (ip_network("10.0.0.0/8"), ip_network("2001:db8::7/128"))),
    "cors_origins": (
        "https://www.Example.com:443, http://localhost:3000,",
        ("https://www.example.com", "http://localhost:3000"),
    ),
    "time_zone": ("Africa/Cairo", "Africa/Cairo"),
    "second_factor_roles": ("admin, sales", ("admin", "sales")),
    "allowed_networks": ("127.0.0.0/8,::1", (ip_network("127.0.0.0/8"), ip_network("::1/128"))),
    "encryption_keys": (f"{KEY}, {OTHER_KEY},", (KEY, OTHER_KEY)),
    "payment_url": ("https://pay.example.com:8443/deposits", "https://pay.example.com:8443/deposits"),
    "payment_secret": (SECRET, SECRET),
    "hsts_subdomains": ("true", True),
    "smtp_url": ("smtps://u:p@mail.example.com:465", "smtps://u:p@mail.example.com:465"),
    "mail_from": ("شقق النرجس <sales@example.com>", "شقق النرجس <sales@example.com>"),
    "metrics_token": (METRICS_TOKEN, METRICS_TOKEN),
    "run_as": ("web", "web"),
    **{name: (str(number), number) for name, number in NUMBERS.items()},
}


def read(**values: str) -> Settings:
    return Settings.from_environment({f"HOLDFAST_{name.upper()}": value for name, value in values.items()})


@pytest.mark.parametrize("name", ["database_url", "public_url", "cors_origins", "payment_url"])
def test_the_sentence_about_a_wrong_url_has_an_example_that_is_accepted(name: str) -> None:
    found = re.search(r"such as ([^\s,]+[^\s,.])", refusal(**{name: "example.com"}))
    assert found is not None
    secret = {"payment_secret": SECRET} if name == "payment_url" else {}
    assert found[1] in str(getattr(read(**{name: found[1]}, **secret), name))


def refusal(**values: str) -> str:
    with pytest.raises(WrongSetting) as refused:
        read(**values)
    sentence = str(refused.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence
    return sentence


def test_every_setting_has_a_default_and_is_read_from_its_variable() -> None:
    assert dict(read()) == DEFAULTS
    assert dict(read(**{name: text for name, (text, _) in READ.items()})) == {
        name: value for name, (_, value) in READ.items()
    }
    assert read(**dict.fromkeys(DEFAULTS, " ")) == read(), "an empty value counts as not set"
    assert Settings.from_environment({"HOLDFAST_SOMETHING": "x", "RATE_LIMIT": "x"}) == read()


ACCEPTED: dict[str, list[Any]] = {
    "database_url": [
        "postgresql://h/db", "postgres://u:p%40ss@h/db", "postgresql://u@[::1]:5432,h2/db", "postgresql:///db",
        "postgresql://u@/db?host=/var/run/postgresql", "postgresql://u@/db?host=h1,h2&port=1,2",
    ],
    # A limit of zero is off.
    "holds_per_visitor": [0], "holds_per_address": [0], "holds_share_per_network": [0, 100],
    "rehold_seconds": [0], "rate_limit": [0],
    "public_rate_limit": [0], "connections_per_address": [0], "wrong_keys_per_minute": [0, 1000],
    "hold_seconds": [604_800],
    "reservation_days": [3_650], "metrics_port": [1],
    "lapsed_hold_retention_days": [7, 36_500],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in ACCEPTED.items() for value in values]
)
def test_a_value_within_its_bounds_is_accepted(name: str, value: object) -> None:
    assert getattr(read(**{name: str(value)}), name) == value


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
    assert list(read(trusted_proxies=value).trusted_proxies) == list(map(ip_network, networks))


REFUSED = {
    "database_url": [
        "mysql://h/db", "h/db", "postgresql:h", "postgresql://h:port/db", "postgresql://h:99999/db",
        "postgresql://h1:1,h2:0/db", "postgresql://[::1/db", "postgresql://u@/db?host=h&port=x",
    ],
    "data_dir": [__file__],
    "public_url": [
        "units.example.com", "ftp://units.example.com", "https://units.example.com/", "https://",
        "https://units.example.com/path", "https://user@units.example.com", "https://units.example.com:port",
    ],
    "cors_origins": [
        "*", "null", "www.example.com", "https://www.example.com/", "https://*.example.com,ftp://example.com",
        "https://شقة.example",
    ],
    "trusted_proxies": ["proxy.example.com", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/8 192.0.2.1"],
    "hold_seconds": ["0", "-1", "604800.1", "nan"],
    "reservation_days": ["0", "3651"],
    "holds_per_visitor": ["-1", "1.5"],
    "holds_per_address": ["many", "9" * 5000], "holds_share_per_network": ["-1", "101", "2.5"],
    "rehold_seconds": ["-1", "1e300"],
    "session_idle_minutes": ["0", "soon"],
    "session_hours": ["-1", "1e9"],
    "second_factor_roles": ["all", "admin;sales", "Admin", "admin,boss"],
    "time_zone": ["Riyadh", "Asia", "../etc/passwd", "asia/riyadh"],
    "public_rate_limit": ["-1", "inf"],
    "connections_per_address": ["-1", "many"],
    "wrong_keys_per_minute": ["-1", "1001", "2.5"],
    "rate_limit": ["-1", "many", "nan", "inf"],
    "event_retention_days": ["0", "-3", "1e9"],
    "retry_first_gap_seconds": ["0", "-30", "86401", "30s"],
    "attempts": ["0", "31", "8.0"],
    "attempt_timeout_seconds": ["0", "60.1", "inf"],
    "lease_seconds": ["0", "601", "10.9", "long"],
    "delivery_retention_days": ["0", "36501"],
    "lapsed_hold_retention_days": ["0", "6.9", "36501", "never"], "audit_retention_days": ["0", "-1", "nan"],
    "allowed_networks": ["localhost", "10.0.0.1/8", "10.0.0.0/8;127.0.0.1"],
    "processes": ["0", "1.5", "many"],
    "hsts_subdomains": ["2", "subdomains"],
    "metrics_port": ["0", "65536", "tcp://10.0.0.1:9464"],
    "mail_from": ["sales", "a@b@c", "<sales@example.com", "a@b, c@d", "x@example.com <x@example.com",
                  "sales.@example.com", "a..b@c.de", "=?utf-8?q?a=0D=0ABcc=3Ab=40c.de?= <sales@example.com>"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values]
)
def test_another_value_is_refused_with_its_name_and_what_is_accepted(name: str, value: str) -> None:
    assert refusal(**{name: value}).startswith(f"HOLDFAST_{name.upper()} is '{value}', but must be ")


def test_a_password_is_not_repeated_in_the_sentence() -> None:
    assert "hunter2" not in refusal(database_url="postgresql://user:hunter2@h:port/db")


@pytest.mark.parametrize(("timeout", "lease"), [("10", "11"), ("1.5", "2.5"), ("60", "600")])
def test_a_lease_is_at_least_a_second_longer_than_an_attempt(timeout: str, lease: str) -> None:
    settings = read(attempt_timeout_seconds=timeout, lease_seconds=lease)
    assert settings.lease_seconds == float(lease)
    shorter = str(float(timeout) + 0.9)
    sentence = refusal(attempt_timeout_seconds=timeout, lease_seconds=shorter)
    assert sentence.startswith("HOLDFAST_LEASE_SECONDS is ")


@pytest.mark.parametrize(
    "keys",
    ["hunter2", KEY[:-1], KEY[:-5] + "====", KEY + KEY, f"{KEY},hunter2", KEY.replace("M", "!"), "é" * 44],
)
def test_a_wrong_encryption_key_is_refused_and_no_key_is_shown(keys: str) -> None:
    sentence = refusal(encryption_keys=keys)
    assert sentence.startswith("HOLDFAST_ENCRYPTION_KEYS is '…', but must be ")
    assert not any(part in sentence for part in (KEY[:8], "hunter2", "é"))


@pytest.mark.parametrize("token", [METRICS_TOKEN[:15], f"{METRICS_TOKEN} x", f"{METRICS_TOKEN}é"])
def test_a_wrong_metrics_token_is_refused_and_not_shown(token: str) -> None:
    sentence = refusal(metrics_token=token)
    assert sentence.startswith("HOLDFAST_METRICS_TOKEN is '…', but must be at least 16 of the characters ")
    assert token[:8] not in sentence


def test_settings_do_not_show_their_secrets_cannot_be_changed_and_read_no_environment_by_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = read(encryption_keys=KEY, payment_url=PAYMENT_PAGE, payment_secret=SECRET)
    settings = settings.model_copy(update={"metrics_token": METRICS_TOKEN})
    for shown in (repr(settings), str(settings)):
        assert METRICS_TOKEN not in shown
        assert KEY not in shown
        assert SECRET not in shown
    with pytest.raises(ValueError):
        settings.processes = 2  # type: ignore[misc]
    assert settings.model_copy(update={"processes": 2}).processes == 2
    monkeypatch.setenv("HOLDFAST_PROCESSES", "4")
    assert Settings().processes == 1


# E-mail


@pytest.mark.parametrize(
    "url",
    [
        "mail.example.com", "https://mail.example.com", "smtp://", "smtp://u@mail.example.com", "smtp://h:0",
        "smtp://h:99999", "smtp://h/inbox", "smtp://h?tls=1", "smtp://u:hunter2@h:port",
    ],
)  # fmt: skip
def test_another_smtp_server_is_refused_and_no_password_is_shown(url: str) -> None:
    sentence = refusal(smtp_url=url, mail_from="sales@example.com")
    assert sentence.startswith("HOLDFAST_SMTP_URL is '…', but must be smtp:// or smtps:// with a host")


def test_e_mail_needs_both_its_settings() -> None:
    both = {"smtp_url": "smtp://127.0.0.1:25", "mail_from": "sales@example.com"}
    assert read(**both).smtp_url == both["smtp_url"]
    for name, other in (("smtp_url", "mail_from"), ("mail_from", "smtp_url")):
        assert refusal(**{name: both[name]}) == (
            f"HOLDFAST_{other.upper()} is not set, but must be set together with HOLDFAST_{name.upper()}."
        )


# Payments


@pytest.mark.parametrize(
    "url",
    [
        PAYMENT_PAGE, f"{PAYMENT_PAGE}/checkout/deposits", "HTTPS://PAY.example.com:443/",
        "http://127.0.0.1:8001/pay", "http://localhost:8001/pay", "http://[::1]:8001/pay",
    ],
)  # fmt: skip
def test_a_payment_page_is_over_https_or_on_this_machine(url: str) -> None:
    assert read(payment_url=url, payment_secret=SECRET).payment_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://pay.example.com", "http://127.0.0.1.example.com/pay", "http://localhost@pay.example.com/",
        "https://user:pass@pay.example.com", "https://pay.example.com/?merchant=7",
        "https://pay.example.com/#top", "https://pay.example.com:0/", "https://pay.example.com:65536",
        "https://pay.example.com; script-src *", "https://*/", "https://دفع.example", "https:///pay",
        "https://", "pay.example.com", "ftp://pay.example.com",
    ],
)  # fmt: skip
def test_another_payment_page_is_refused(url: str) -> None:
    sentence = refusal(payment_url=url, payment_secret=SECRET)
    assert sentence.startswith(f"HOLDFAST_PAYMENT_URL is '{url}', but must be https://")


@pytest.mark.parametrize(
    "secret", ["hunter2", "fifteen letters", "sixteen\x00letters", "a line\nand another"]
)
def test_a_payment_secret_that_is_short_or_no_text_is_refused_and_not_shown(secret: str) -> None:
    sentence = "HOLDFAST_PAYMENT_SECRET is '…', but must be at least 16 printable characters."
    assert refusal(payment_url=PAYMENT_PAGE, payment_secret=secret) == sentence


def test_payment_page_and_secret_are_set_together() -> None:
    sentence = "HOLDFAST_PAYMENT_{} is not set, but must be set together with HOLDFAST_PAYMENT_{}."
    assert refusal(payment_url=PAYMENT_PAGE) == sentence.format("SECRET", "URL")
    assert refusal(payment_secret=SECRET) == sentence.format("URL", "SECRET")


# Names


@pytest.mark.parametrize(
    ("misspelt", "known"),
    [("HOLD_SECOND", "HOLD_SECONDS"), ("HODL_SECONDS", "HOLD_SECONDS"), ("DATABASEURL", "DATABASE_URL"),
     ("PROCESS", "PROCESSES"), ("KEYS", "KEY")],
)  # fmt: skip
def test_a_misspelt_name_is_refused_with_the_right_one(misspelt: str, known: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        check_setting_names({f"HOLDFAST_{misspelt}": "x"})
    assert str(refused.value) == f"HOLDFAST_{misspelt} is not a setting; did you mean HOLDFAST_{known}?"


def test_other_unknown_names_are_warned_of_in_one_line_and_known_ones_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    of_commands = ("URL", "KEY", "SECRET")
    of_kubernetes = ("PORT", "PORT_8000_TCP_ADDR", "SERVICE_HOST")
    names = [*map(str.upper, DEFAULTS), *of_commands, *of_kubernetes]
    check_setting_names({f"HOLDFAST_{name}": "x" for name in names} | {"HOLDFAST_HOLD_SECOND": " "})
    assert not caplog.messages
    check_setting_names({"HOLDFAST_SOMETHING": "x", "HOLDFAST_COLOUR": "x", "PATH": "/bin"})
    assert caplog.messages == ["ignoring unknown settings: HOLDFAST_COLOUR, HOLDFAST_SOMETHING"]
