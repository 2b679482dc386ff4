"""The id of a request, which its answer, its log line and its traces carry."""

import os
import re

_SANE = re.compile(rb"[A-Za-z0-9._~:+/=-]{1,128}\Z")


def new_request_id() -> str:
    return os.urandom(16).hex()


def request_id_from(headers: dict[bytes, bytes]) -> str:
    """The caller's own, if it is sane."""
    sent = headers.get(b"x-request-id")
    return sent.decode() if sent is not None and _SANE.match(sent) else new_request_id()
