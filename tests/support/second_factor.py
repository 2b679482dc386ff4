"""A second factor, as its page offers it and an authenticator app shows it."""

import re
import time

import pyotp


def code_now(secret: str, apart: int = 0) -> str:
    """``apart``: so many steps later."""
    return pyotp.TOTP(secret).at(int(time.time()), apart)


def offered_secret(page: str) -> str:
    found = re.search(r"(?:[A-Z2-7]{4} ){7}[A-Z2-7]{4}", page)
    assert found is not None
    return found[0].replace(" ", "")
