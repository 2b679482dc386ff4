"""The id of a request, which its answer, its log line and its traces carry."""

import os
import re

_SANE = re.compile(rb"[A-Za-z0-9._~:+/=-]{1,128}\Z")


def new_request_id() -> str:
    return os.urandom(16).hex()


def request_id_from(headers: list[tuple[bytes, bytes]]) -> str:
    """The caller's own, if it is sane."""
    for name, value in headers:
        if name == b"x-request-id" and _SANE.match(value):
            return value.decode()
    return new_request_id()
