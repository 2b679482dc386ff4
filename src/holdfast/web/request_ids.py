"""The id of a request, which its answer, its log line and its traces carry."""

import re
from random import getrandbits

_SANE = re.compile(rb"[A-Za-z0-9._~:+/=-]{1,128}")


def new_request_id() -> str:
    """Nothing is opened by it, so it need not be hard to guess."""
    return f"{getrandbits(128):032x}"


def is_sane(sent: bytes) -> bool:
    """Whether the caller's own is taken."""
    return _SANE.fullmatch(sent) is not None
