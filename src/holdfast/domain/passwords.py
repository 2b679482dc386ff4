"""What a password may be. Long is strong: there are no rules about signs and capitals."""

import unicodedata

from holdfast.domain.message import AnyMessage, Message
from holdfast.domain.refusals import Fault

SHORTEST, LONGEST = 12, 200

# Of those that are long enough, what people try first.
_SILLY = frozenset(
    {
        "123456789012", "1234567890123", "12345678901234", "123456789012345", "1234567890123456",
        "123123123123", "111111111111", "000000000000", "012345678901", "987654321098", "abcdefghijkl",
        "abcdefghijklm", "abcabcabcabc", "abcd12345678", "abc123abc123", "qwertyuiop12", "qwertyuiop123",
        "qwertyuiopas", "qwertyqwerty", "qwerty123456", "qwerty1234567", "1q2w3e4r5t6y", "1qaz2wsx3edc",
        "asdfghjkl123", "zxcvbnm12345", "passwordpassword", "password1234", "password12345",
        "password123456", "password1234567", "password12345678", "passw0rd1234", "passw0rd12345",
        "mypassword123", "changemechangeme", "changeme1234", "changeme12345", "letmeinletmein",
        "letmein12345", "welcome12345", "welcome123456", "iloveyou1234", "iloveyouiloveyou",
        "administrator", "administrator1", "admin1234567", "admin12345678", "adminadmin12",
        "adminadminadmin", "holdfast1234", "holdfastholdfast", "backoffice12", "riyadh123456",
        "saudiarabia1", "saudiarabia123", "correcthorsebatterystaple",
    }
)  # fmt: skip


def normal_form(password: str) -> str:
    """The same password from every keyboard: one character may be written in several ways."""
    return unicodedata.normalize("NFKC", password)


def password_fault(password: str, email: str, pointer: str = "/password") -> Fault | None:
    told = _fault(normal_form(password), email)
    return None if told is None else Fault(pointer, told)


def _fault(password: str, email: str) -> AnyMessage | None:
    if not SHORTEST <= len(password) <= LONGEST:
        message = "A password has %(least)s to %(most)s characters."
        return Message(message, {"least": SHORTEST, "most": LONGEST})
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in password):
        return "A password is made of characters that can be typed."
    if _is_silly(password.casefold(), email.casefold()):
        return "This password is among the first that anybody would try."
    return None


def _is_silly(password: str, email: str) -> bool:
    return password in _SILLY or len(set(password)) < 4 or password in (email, email.partition("@")[0])
