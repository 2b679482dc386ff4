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


def refuse_foreign(call: Call, form: Form, token: str) -> None:
    site = call.exchange.head.values.get(b"sec-fetch-site", b"none")
    if site not in _OWN_SITE or not hmac.compare_digest(
        form.raw("csrf").encode(), csrf_token(token).encode()
    ):
        raise ForeignForm
