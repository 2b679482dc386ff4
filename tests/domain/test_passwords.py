"""Long passwords are accepted, and silly ones are not."""

import pytest

from holdfast.domain.login import LONGEST_PASSWORD, SHORTEST_PASSWORD, normalize_password, password_fault

EMAIL = "nora.alharbi@example.com"


@pytest.mark.parametrize(
    "password",
    [
        "a horse of lead",
        "ثلاث كلمات طويلة",
        "Zq!9" * 3,
        "x1y2" * (LONGEST_PASSWORD // 4),
        "🐪🐫🦅🐎🌴🏜🕌🗝🔑🚪🪟🏠",
    ],
    ids=ascii,
)
def test_long_enough_is_good_enough(password: str) -> None:
    assert password_fault(password, EMAIL) is None


@pytest.mark.parametrize("password", ["", "short", "x1y2z3w4v5u"[: SHORTEST_PASSWORD - 1], "ab3!" * 50 + "x"])
def test_too_short_or_too_long_is_refused(password: str) -> None:
    fault = password_fault(password, EMAIL)
    assert fault is not None
    assert fault.sentence() == "password: A password has 12 to 200 characters."


@pytest.mark.parametrize(
    "password",
    [
        "password1234", "PassWord1234", "qwertyuiop12", "123456789012", "aaaaaaaaaaaaaaa", "abababababab",
        EMAIL, EMAIL.upper(), "nora.alharbi", "administrator",
    ],
)  # fmt: skip
def test_what_anybody_would_try_first_is_refused(password: str) -> None:
    fault = password_fault(password, EMAIL, "/newPassword")
    assert fault is not None
    assert fault.pointer == "/newPassword"


@pytest.mark.parametrize("sign", ["\0", "\n", "\ud800", "\x7f"], ids=ascii)
def test_what_cannot_be_typed_is_refused(sign: str) -> None:
    assert password_fault(f"a horse of lead{sign}", EMAIL) is not None


def test_one_password_from_two_keyboards_is_the_same() -> None:
    assert normalize_password("cafe\u0301 ﬁne words") == normalize_password("caf\u00e9 fine words")
