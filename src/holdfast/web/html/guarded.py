"""The headers of pages that belong to somebody: nothing runs or frames but what is ours."""

from __future__ import annotations

from starlette.responses import HTMLResponse

# Pictures of units are where their developer keeps them; forms go to ourselves.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; font-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action {}; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": _POLICY.format("'self'"),
    "Cache-Control": "no-store",
    # Not `no-referrer`: with it a form's Origin is `null`, and could not be told from a stranger's.
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
}


def headers_with(form_target: str) -> dict[str, str]:
    """Of pages whose forms may lead to one other site: browsers ask that of where a form is sent on to."""
    return {**HEADERS, "Content-Security-Policy": _POLICY.format(f"'self' {form_target}")}


def html(text: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(text, status, headers=HEADERS)
