"""Bodies as they come: never more than is wanted."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request

BODY_LIMIT = 256 * 1024
_OWN_SITE = ("same-origin", "none")


async def read_body(request: Request) -> bytes | None:
    """None: it is too large to be one that is meant for us."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_LIMIT:
            return None
    return body


async def read_form(request: Request) -> dict[str, str]:
    """Nothing of a form that another site has sent, or that is none."""
    body = await read_body(request)
    is_own = request.headers.get("sec-fetch-site", "none") in _OWN_SITE
    if body is None or not is_own:
        return {}
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=20))
    except ValueError:
        return {}
