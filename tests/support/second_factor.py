"""What somebody's authenticator app would show."""

import time

from holdfast.domain.second_factor import STEP_SECONDS, code_at


def code_now(secret: str, apart: int = 0) -> str:
    """``apart``: so many steps later."""
    return code_at(secret, int(time.time()) // STEP_SECONDS + apart)
