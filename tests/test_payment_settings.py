"""The payment page and what is shared with it: set together, over https, and never shown."""

import pytest

from holdfast.settings import Settings, WrongSetting

PAYMENT_SECRET = "a secret of payments"


@pytest.mark.parametrize(
    "url",
    [
        "https://pay.example.com",
        "https://pay.example.com/checkout/deposits",
        "HTTPS://PAY.example.com:443/",
        "http://127.0.0.1:8001/pay",
        "http://localhost:8001/pay",
        "http://[::1]:8001/pay",
    ],
)
def test_a_payment_page_is_over_https_or_on_this_machine(url: str) -> None:
    given = {"HOLDFAST_PAYMENT_URL": url, "HOLDFAST_PAYMENT_SECRET": PAYMENT_SECRET}
    assert Settings.from_environment(given).payment_url == url


@pytest.mark.parametrize(
    "url",
    [
        "http://pay.example.com",
        "http://127.0.0.1.example.com/pay",
        "http://localhost@pay.example.com/",
        "https://user:pass@pay.example.com",
        "https://pay.example.com/?merchant=7",
        "https://pay.example.com/#top",
        "https://pay.example.com:0/",
        "https://pay.example.com:65536",
        "https://pay.example.com; script-src *",
        "https://*/",
        "https://دفع.example",
        "https:///pay",
        "https://",
        "pay.example.com",
        "ftp://pay.example.com",
    ],
)
def test_another_payment_page_is_refused(url: str) -> None:
    given = {"HOLDFAST_PAYMENT_URL": url, "HOLDFAST_PAYMENT_SECRET": PAYMENT_SECRET}
    with pytest.raises(WrongSetting) as refused:
        Settings.from_environment(given)
    sentence = str(refused.value)
    assert sentence.startswith(f"HOLDFAST_PAYMENT_URL is '{url}', but must be https://")
    assert "\n" not in sentence


@pytest.mark.parametrize(
    "secret", ["hunter2", "fifteen letters", "sixteen\x00letters", "a line\nand another"]
)
def test_a_payment_secret_that_is_short_or_no_text_is_refused_and_not_shown(secret: str) -> None:
    given = {"HOLDFAST_PAYMENT_URL": "https://pay.example.com", "HOLDFAST_PAYMENT_SECRET": secret}
    with pytest.raises(WrongSetting) as refused:
        Settings.from_environment(given)
    assert str(refused.value) == (
        "HOLDFAST_PAYMENT_SECRET is '…', but must be at least 16 printable characters."
    )


@pytest.mark.parametrize(
    ("there", "value", "missing"),
    [
        ("HOLDFAST_PAYMENT_URL", "https://pay.example.com", "HOLDFAST_PAYMENT_SECRET"),
        ("HOLDFAST_PAYMENT_SECRET", PAYMENT_SECRET, "HOLDFAST_PAYMENT_URL"),
    ],
)
def test_payment_page_and_secret_are_set_together(there: str, value: str, missing: str) -> None:
    with pytest.raises(WrongSetting) as refused:
        Settings.from_environment({there: value})
    assert str(refused.value) == f"{missing} is not set, but must be set together with {there}."


def test_the_settings_do_not_show_the_payment_secret() -> None:
    given = {"HOLDFAST_PAYMENT_URL": "https://pay.example.com", "HOLDFAST_PAYMENT_SECRET": PAYMENT_SECRET}
    assert PAYMENT_SECRET not in repr(Settings.from_environment(given))
