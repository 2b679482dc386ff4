"""The pages of the world outside: strict about what they load, in English and Arabic."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse

from holdfast.demo.outside.receiver import Received
from holdfast.web.pages.i18n import DIRECTIONS, NAMES, Language, language_of, preferred
from holdfast.web.pages.templates import templates

_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
)


class OutsidePages:
    def __init__(self, holdfast_url: str, time_zone: str) -> None:
        self._holdfast_url = holdfast_url
        self._time_zone = time_zone

    def language(self, code: str | None, request: Request) -> Language:
        """What was asked for, or what the browser prefers."""
        spoken = code if code in DIRECTIONS else preferred(request.headers.get("accept-language", ""))
        return language_of(spoken or "en", "latn", self._time_zone)

    def html(
        self,
        name: str,
        language: Language,
        status: int = 200,
        form_goes_on_to: str | None = None,
        **values: Any,
    ) -> HTMLResponse:
        text = self._rendered(name, language, **values)
        policy = _POLICY if form_goes_on_to is None else f"{_POLICY} {_origin(form_goes_on_to)}"
        return HTMLResponse(text, status, headers={**_HEADERS, "Content-Security-Policy": policy})

    def entry(self, received: Received, language: Language) -> str:
        """One line of the receiver's page, for a browser that has the others."""
        return self._rendered("received.html", language, one=received)

    def _rendered(self, name: str, language: Language, **values: Any) -> str:
        return (
            templates()
            .get_template(f"demo/{name}")
            .render(language=language, languages=NAMES, holdfast_url=self._holdfast_url, **values)
        )


def in_other_languages(request: Request, language: Language, parameter: str) -> dict[str, str]:
    """The address of the same page in each of them."""
    given = {name: value for name, value in request.query_params.items() if name != parameter}
    return {code: f"?{urlencode({**given, parameter: code})}" for code in language.others}


def _origin(url: str) -> str:
    """Browsers hold a form to its policy through every redirect that follows."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
