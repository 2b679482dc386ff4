"""What somebody's authenticator app would show."""

import time

import pyotp


def code_now(secret: str, apart: int = 0) -> str:
    """``apart``: so many steps later."""
    return pyotp.TOTP(secret).at(int(time.time()), apart)
