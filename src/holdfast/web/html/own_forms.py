"""CSRF protection: other sites can make a browser send a form, but cannot read the token in ours."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from holdfast.web.html.forms import Form
from holdfast.web.refusals import ForeignForm
from holdfast.web.request import Request

_OWN_SITE = frozenset({b"same-origin", b"none"})
_SIZE = hashlib.sha256().digest_size


def csrf_token(secret: str) -> str:
    """Return what a form must send back. It follows from the secret of a cookie and tells nothing of it.

    It is masked anew for each response: pages are compressed, and the length of a compressed page must not
    tell of a token that stays the same (BREACH).
    """
    mask = secrets.token_bytes(_SIZE)
    return (mask + _xor(mask, _digest(secret))).hex()


def is_csrf_token(sent: str, secret: str) -> bool:
    try:
        masked = bytes.fromhex(sent)
    except ValueError:
        return False
    return hmac.compare_digest(_xor(masked[:_SIZE], masked[_SIZE:]), _digest(secret))


def is_of_own_site(request: Request) -> bool:
    """Whether the browser says that a page of ours sent the request, or a person."""
    return request.header_values.get(b"sec-fetch-site", b"none") in _OWN_SITE


def refuse_foreign(request: Request, form: Form, secret: str) -> None:
    if not is_of_own_site(request) or not is_csrf_token(form.raw("csrf"), secret):
        raise ForeignForm


def _digest(secret: str) -> bytes:
    return hashlib.sha256(b"csrf:" + secret.encode()).digest()


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=False))
