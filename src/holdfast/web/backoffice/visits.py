"""One request of a person to the back office: who they are, how they are spoken to, what they see."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.responses import HTMLResponse, RedirectResponse, Response

from holdfast import __version__
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.permissions import Permission
from holdfast.domain.staff import Preferences, Staff
from holdfast.domain.status import Caller
from holdfast.operations.login import SignedIn
from holdfast.web.html.forms import Form, url_fields
from holdfast.web.html.guarded import HEADERS, html
from holdfast.web.html.language import NAMES, Language
from holdfast.web.html.own_forms import csrf_token
from holdfast.web.html.templates import templates
from holdfast.web.request import Request

if TYPE_CHECKING:
    from holdfast.web.backoffice.desk import Desk

PREFIX = "/backoffice"
SESSION_COOKIE = "holdfast_session"
FORM_COOKIE = "holdfast_form"
LANGUAGE_COOKIE = "holdfast_language"


class Notice(NamedTuple):
    """What the next page tells first."""

    text: str
    kind: str = "done"
    """``done``, ``warning`` or ``refused``."""


class Visit:
    def __init__(
        self,
        desk: Desk,
        request: Request,
        signed_in: SignedIn | None,
        language: Language,
        token: str,
        preferences: Preferences,
    ) -> None:
        self.desk = desk
        self.request = request
        self.signed_in = signed_in
        self.language = language
        self.preferences = preferences
        self.token = token
        """Of the session, or of the form cookie where nobody is signed in yet."""
        self.form = Form(())
        self.notice = _left(signed_in)

    @property
    def staff(self) -> Staff:
        """For pages behind the sign-in."""
        assert self.signed_in is not None
        return self.signed_in.staff

    @property
    def author(self) -> Author:
        return Author(ActorKind.STAFF, self.staff.email, self.request.request_id)

    @property
    def caller(self) -> Caller:
        return Caller.ADMIN if self.may(Permission.REVOKE_SALE) else Caller.STAFF

    @property
    def is_fragment(self) -> bool:
        """Whether a script asks for a part of a page."""
        return b"hx-request" in self.request.header_values

    @property
    def is_stream(self) -> bool:
        """Whether a script listens for what is to come."""
        return b"text/event-stream" in self.request.header_values.get(b"accept", b"")

    @property
    def csrf(self) -> str:
        return csrf_token(self.token)

    @property
    def query(self) -> Form:
        """The query, read as leniently as a form: a wrong filter filters nothing."""
        return Form(url_fields(self.request.raw_query))

    @property
    def address(self) -> str:
        """Path and query, to come back to."""
        query = self.request.raw_query.decode("latin-1")
        return f"{self.request.path}?{query}" if query else self.request.path

    def may(self, permission: Permission) -> bool:
        return self.signed_in is not None and self.staff.may(permission)

    def _(self, text: str, /, **values: Any) -> str:
        return self.language.gettext(text, **values)

    def ngettext(self, one: str, many: str, num: int, /, **values: Any) -> str:
        return self.language.ngettext(one, many, num, **values)

    async def render(self, template: str, status: int = 200, /, **values: Any) -> HTMLResponse:
        """A whole page, or the part that a script asked for, if the template is one."""
        news = None if self.is_fragment else await self.desk.news_for(self)
        text = (
            templates()
            .get_template(f"backoffice/{template}")
            .render(
                visit=self,
                language=self.language,
                languages=NAMES,
                may=self.may,
                permission=Permission,
                csrf=self.csrf,
                now=None if self.signed_in is None else self.signed_in.at,
                news=news,
                version=__version__,
                **values,
            )
        )
        response = html(text, status)
        self.desk.remember_form(self, response)
        return response

    async def go(self, path: str, notice: str | None = None, kind: str = "done") -> Response:
        """On to another page, which tells the notice once."""
        if notice is not None and self.signed_in is not None:
            left = json.dumps([notice, kind])
            await self.desk.signing_in.leave_notice(self.signed_in.session_id, left)
        return RedirectResponse(path, 303, headers=HEADERS)


def _left(signed_in: SignedIn | None) -> Notice | None:
    if signed_in is None or signed_in.notice is None:
        return None
    return Notice(*json.loads(signed_in.notice))
