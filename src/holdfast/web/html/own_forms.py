"""Whether a form is one of ours: other sites can make a browser send one, but cannot read what ours says."""

from __future__ import annotations

import hashlib
import hmac

from holdfast.web.call import Call
from holdfast.web.html.forms import Form
from holdfast.web.refusals import ForeignForm

_OWN_SITE = frozenset({b"same-origin", b"none"})


def csrf_token(token: str) -> str:
    """What a form must send back; it follows from the cookie and tells nothing of it."""
    return hashlib.sha256(b"csrf:" + token.encode()).hexdigest()


def is_of_own_site(call: Call) -> bool:
    """As far as the browser says."""
    return call.exchange.head.values.get(b"sec-fetch-site", b"none") in _OWN_SITE


def refuse_foreign(call: Call, form: Form, token: str) -> None:
    if not is_of_own_site(call) or not hmac.compare_digest(
        form.raw("csrf").encode(), csrf_token(token).encode()
    ):
        raise ForeignForm
