"""The JSON body of a request: required, or there if the client likes."""

from __future__ import annotations

from typing import Any

from holdfast.web import strict_json
from holdfast.web.call import Call

_DECLARES_A_BODY = (b"content-type", b"content-encoding")


async def json_text(call: Call) -> str:
    call.require_media_type()
    return strict_json.text_of(await call.body())


async def json_body(call: Call) -> Any:
    """Any JSON value; that it is an object is a matter of ``checking``."""
    return strict_json.parse(await json_text(call))


async def optional_json_body(call: Call) -> Any:
    """An empty object if none was sent, which needs no media type; a wrong one is refused all the same."""
    if any(name in call.exchange.head.values for name in _DECLARES_A_BODY):
        call.require_media_type()
    body = await call.body()
    if not body:
        return {}
    call.require_media_type()
    return strict_json.parse(strict_json.text_of(body))
