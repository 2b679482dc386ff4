"""One request of a buyer: how they are known, how they are spoken to, what they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse, RedirectResponse, Response

from holdfast import __version__
from holdfast.web.html.forms import Form, url_fields
from holdfast.web.html.language import NAMES, Language
from holdfast.web.html.own_forms import csrf_token
from holdfast.web.html.templates import templates
from holdfast.web.refusals import MalformedBody
from holdfast.web.request import Request

if TYPE_CHECKING:
    from holdfast.web.storefront.pages.door import Door

PREFIX = "/p"


class Visit:
    def __init__(self, door: Door, request: Request, language: Language, visitor: str, secret: str) -> None:
        self.door = door
        self.request = request
        self.language = language
        self.visitor = visitor
        """By which holds are counted: what its cookie says, or will say after this answer."""
        self.secret = secret
        """By which the buyer's own bookings open, and their forms are known to be theirs."""
        self.form = Form(())
        self.stands_at = request.path
        """Where a reader of this page should come back to; of a form, the page that it stood on."""

    @property
    def csrf(self) -> str:
        return csrf_token(self.secret)

    @property
    def network_address(self) -> str:
        """By which live holds are counted."""
        return self.door.counted_address(self.request)

    @property
    def is_fragment(self) -> bool:
        """Whether a script asks for a part of a page."""
        return b"hx-request" in self.request.header_values

    @property
    def query(self) -> Form:
        """Read as leniently as a form: a wrong filter filters nothing."""
        return Form(url_fields(self.request.raw_query))

    @property
    def in_other_languages(self) -> dict[str, str]:
        """The address of this page in each other language, with the same filters."""
        kept = self._kept_query
        return {code: f"{self.stands_at}?{kept}lang={code}" for code in self.language.others}

    @property
    def _kept_query(self) -> str:
        """Nothing of the address of a form, nor of what no page could read."""
        if self.stands_at != self.request.path:
            return ""
        try:
            kept = [(name, value) for name, value in self.query.items() if name != "lang"]
        except MalformedBody:
            return ""
        return urlencode(kept) + "&" if kept else ""

    def _(self, text: str, /, **values: Any) -> str:
        return self.language.gettext(text, **values)

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        return self.language.ngettext(one, many, num, **values)

    def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        """A whole page, or the part that a script asked for, if the template is one."""
        text = (
            templates()
            .get_template(f"storefront/{template}")
            .render(
                visit=self,
                language=self.language,
                languages=NAMES,
                csrf=self.csrf,
                version=__version__,
                **values,
            )
        )
        response = HTMLResponse(text, status, headers=self.door.headers)
        self.door.remember(self, response)
        return response

    def go(self, path: str) -> Response:
        """On to another page, which is asked for anew: a reload repeats nothing."""
        response = RedirectResponse(path, 303, headers=self.door.headers)
        self.door.remember(self, response)
        return response


def project_path(slug: str) -> str:
    return f"{PREFIX}/{slug}"


def unit_path(slug: str, code: str) -> str:
    return f"{project_path(slug)}/units/{quote(code, safe='')}"


def booking_path(slug: str, reference: str) -> str:
    return f"{project_path(slug)}/bookings/{reference}"
