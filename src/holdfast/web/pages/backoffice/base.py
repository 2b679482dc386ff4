"""Requests of staff to the back office: sessions, notices, and what several pages parse from a request."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit
from uuid import UUID, uuid5

from starlette.responses import RedirectResponse, Response

from holdfast.domain import errors
from holdfast.domain.audit import ActorKind, Author
from holdfast.domain.permissions import Permission
from holdfast.domain.project import Project, slug_fault
from holdfast.domain.staff import Preferences, Staff
from holdfast.domain.transitions import Caller
from holdfast.operations.login import LoginClient, NewSession, StaffSession
from holdfast.web.pages.base import PAGE_HEADERS
from holdfast.web.pages.i18n import language_of, translate
from holdfast.web.pages.live import EVENT_STREAM, event
from holdfast.web.pages.routes import LANGUAGE_COOKIE, SAFE_METHODS, PageRequest, Pages
from holdfast.web.pagination import CursorCodec

PREFIX = "/backoffice"
ACCOUNT = f"{PREFIX}/account"
PROJECTS_OFFERED = 500
"""How many projects a form or a filter lists at most."""

_SESSION_COOKIE = "holdfast_session"
_FORM_COOKIE = "holdfast_form"
_BROWSER_COOKIE = "holdfast_browser"
_LONGEST_NEXT_PATH = 4096
_SET_UP_FORMS = ("", "/preferences", "/second-factor", "/second-factor/confirm")
# All that is open to staff who lack the second factor that their role requires.
_OPEN_WITHOUT_FACTOR = {f"{PREFIX}/sign-out", *(ACCOUNT + form for form in _SET_UP_FORMS)}

# Shown on the page that the form stands on or belongs to, whose path is the one above.
_SHOWN_AS_NOTICE = (errors.IdempotencyKeyUsed, errors.LastAdmin, errors.EndpointRemoved)

T = TypeVar("T")


class Notice(NamedTuple):
    text: str
    kind: str = "done"
    """``done``, ``warning`` or ``refused``."""


class StaffRequest(PageRequest):
    prefix = PREFIX
    template_directory = "backoffice"

    staff_session: StaffSession | None = None
    preferences: Preferences
    notice: Notice | None = None

    async def identify(self) -> None:
        self._become_anonymous()
        self._set_preferences(Preferences(self.preferred_language()))
        token = self.context.cookies.read(self, _SESSION_COOKIE)
        if token is None:
            return
        # A notice is for a page that somebody sees: neither for a part of one nor for a stream.
        is_page = b"text/html" in self.header_values.get(b"accept", b"") and not self.is_fragment
        is_change = self.method not in SAFE_METHODS
        session = await self.services.login.find(
            token, takes_notice=is_page and not is_change, is_click=is_page or is_change
        )
        if session is not None:
            self.staff_session, self.is_anonymous = session, False
            self.csrf_secret = token
            self._set_preferences(session.staff.preferences)
            self.notice = None if session.notice is None else Notice(*json.loads(session.notice))

    async def admit(self, *, is_public: bool) -> Response | None:
        if is_public or self.is_admitted:
            return None
        if self.is_anonymous:
            return self._lead_to(self._login_address())
        return None if self.path in _OPEN_WITHOUT_FACTOR else self._lead_to(ACCOUNT)

    async def layout_values(self) -> dict[str, Any]:
        unseen_failures = None
        if not self.is_fragment and self.may(Permission.SEE_WEBHOOKS):
            search, seen_at = self.services.delivery_search, self.staff.failures_seen_at
            unseen_failures = await search.load_unseen_failures(seen_at)
        return {
            "may": self.may,
            "permission": Permission,
            "now": None if self.staff_session is None else self.staff_session.at,
            "unseen_failures": unseen_failures,
        }

    def set_cookies(self, response: Response) -> None:
        if self.staff_session is None:
            self.context.cookies.set(response, _FORM_COOKIE, self.csrf_secret)

    async def render_error(self, error: Exception) -> Response:
        if isinstance(error, errors.DatabaseUnavailable):
            # The layout for staff would query the database again.
            self._become_anonymous()
        if isinstance(error, _SHOWN_AS_NOTICE):
            page, made_id = self.path.rpartition("/")[0], getattr(error, "made_id", None)
            if made_id is not None and not page.endswith("/keys"):  # A key has no page of its own.
                page = f"{page}/{made_id}"
            with suppress(errors.DatabaseUnavailable):
                return await self.redirect_with_notice(page, self.error_text(error), "warning")
        return await super().render_error(error)

    @property
    def staff(self) -> Staff:
        """The person who is signed in, on pages that are not public."""
        assert self.staff_session is not None
        return self.staff_session.staff

    @property
    def author(self) -> Author:
        return Author(ActorKind.STAFF, self.staff.email, self.request_id)

    @property
    def caller(self) -> Caller:
        return Caller.ADMIN if self.may(Permission.REVOKE_SALE) else Caller.STAFF

    @property
    def form_id(self) -> UUID:
        """Return the id of what the submitted form creates: the same each time it is sent, as with an
        Idempotency-Key. Each rendering of a form has a CSRF token of its own."""
        assert self.staff_session is not None
        return uuid5(self.staff_session.session_id, f"{self.path}\n{self.form.raw('csrf')}")

    @property
    def is_admitted(self) -> bool:
        """Whether the person is signed in, and has the second factor that their role requires."""
        session = self.staff_session
        return session is not None and not self.services.accounts.lacks_factor(session.staff)

    def may(self, permission: Permission) -> bool:
        return self.is_admitted and self.staff.may(permission)

    async def redirect_with_notice(self, path: str, text: str, kind: str = "done") -> Response:
        """Redirect to a page that shows the notice once."""
        assert self.staff_session is not None
        await self.services.login.leave_notice(self.staff_session.session_id, json.dumps([text, kind]))
        return self.redirect(path)

    async def is_still_admitted(self) -> bool:
        """Ask the database again; this does not keep the session open."""
        find = self.services.login.find
        self.staff_session = await find(self.csrf_secret, takes_notice=False, is_click=False)
        return self.is_admitted

    @property
    def login_client(self) -> LoginClient:
        browser = self.context.cookies.read(self, _BROWSER_COOKIE)
        return LoginClient(self.client_address.text, self.header(b"user-agent"), browser)

    async def start_session(self, opened: NewSession, path: str) -> Response:
        """Redirect with the cookie of a new session; the old session of this browser ends."""
        if self.staff_session is not None:
            await self.services.login.sign_out(self.csrf_secret)
        response = self.redirect(path)
        self.context.cookies.set(response, _SESSION_COOKIE, opened.token)
        self.context.cookies.keep(response, _BROWSER_COOKIE, opened.browser)
        self.context.cookies.drop(response, _FORM_COOKIE)
        return response

    def end_session(self) -> Response:
        """Redirect to the sign-in, which then speaks the person's language."""
        response = self.redirect(f"{PREFIX}/sign-in")
        self.context.cookies.drop(response, _SESSION_COOKIE)
        self.keep_language(response, self.language.code)
        return response

    def keep_language(self, response: Response, code: str) -> None:
        self.context.cookies.keep(response, LANGUAGE_COOKIE, code)

    def no_content(self, **headers: str) -> Response:
        """Return the response to a script that keeps what it has, or follows a header."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Response(status_code=204, headers={**PAGE_HEADERS, **named})

    async def list_projects(self) -> list[Project]:
        return await self.services.units.projects_page(None, "", PROJECTS_OFFERED)

    def parse_project(self, projects: Sequence[Project]) -> str:
        """Return the project of the query, if it is offered; any may be named where there are too many."""
        slug = self.query.text("project")
        is_offered = len(projects) > PROJECTS_OFFERED or slug in {project.slug for project in projects}
        return slug if slug_fault(slug) is None and is_offered else ""

    def parse_cursor(self, codec: CursorCodec[T]) -> T | None:
        """Return where the page before ended; anything that is no cursor leads to the first page."""
        try:
            return codec.decode(self.query.text("cursor"))
        except ValueError:
            return None

    def page_links(self, address: str, next_cursor: str | None) -> dict[str, str | None]:
        """Return the addresses of the first and the next page of a list, where there are any."""
        separator = "&" if "?" in address else "?"
        return {
            "first": address if self.query.has("cursor") else None,
            "next": None if next_cursor is None else f"{address}{separator}cursor={next_cursor}",
        }

    def parse_local_time(self, text: str) -> datetime | None:
        """Return the time that a ``datetime-local`` field names in the time zone of the pages, if any."""
        try:
            return self.language.at(text).astimezone(UTC)
        except (ValueError, OverflowError):
            return None

    def parse_new_end(self) -> datetime:
        """Return the end that an extension names: the same again if the form is sent twice."""
        end = self.parse_local_time(self.form.text("until"))
        if end is None:
            raise errors.InvalidInput.at("/until", "This must be a date and a time.")
        return end.replace(microsecond=0)

    def faults(self, error: errors.DomainError) -> dict[str, str]:
        """Return the first fault of each field of a form, in the person's language."""
        found = error.faults if isinstance(error, errors.InvalidInput) else []
        return {
            fault.pointer.strip("/").partition("/")[0]: translate(fault.message, self.language)
            for fault in reversed(found)
        }

    def too_many_attempts_text(self, error: errors.TooManyAttempts) -> str:
        wait = self.language.duration(max(1, error.retry_after_seconds))
        return self._("Too many failed attempts. Try again in %(time)s.", time=wait)

    def _become_anonymous(self) -> None:
        self.staff_session, self.is_anonymous = None, True
        self.csrf_secret = self.context.cookies.read(self, _FORM_COOKIE) or secrets.token_urlsafe(24)

    def _set_preferences(self, preferences: Preferences) -> None:
        self.preferences = preferences
        self.language = language_of(preferences.language, preferences.digits, self.context.time_zone)

    def _login_address(self) -> str:
        """Only what can be requested again is returned to after the sign-in."""
        next_path = local_path(self.full_path) if self.method in SAFE_METHODS else PREFIX
        if self.is_fragment:
            # The page on which the script runs, not the part of it that it asks for.
            next_path = PREFIX
            with suppress(ValueError):
                page = urlsplit(self.header(b"hx-current-url"))
                next_path = local_path(f"{page.path}?{page.query}" if page.query else page.path)
        return f"{PREFIX}/sign-in" + ("" if next_path == PREFIX else f"?next={quote(next_path, safe='')}")

    def _lead_to(self, address: str) -> Response:
        """A script would follow a redirect unseen, and take the page for what it has requested: it gets a
        response that its library understands."""
        if b"text/event-stream" in self.header_values.get(b"accept", b""):
            return Response(event("ended", b"{}"), headers={**PAGE_HEADERS, "Content-Type": EVENT_STREAM})
        if self.is_fragment:
            return self.no_content(HX_Redirect=address)
        return RedirectResponse(address, 303, headers=PAGE_HEADERS)


pages = Pages(StaffRequest)
"""Each module of the back office declares its pages here."""


def local_path(path: str) -> str:
    """Return the path if it is one of a back office page, and else the start page."""
    is_ours = path.startswith(PREFIX) and "\\" not in path and len(path) <= _LONGEST_NEXT_PATH
    return path if is_ours and path.isprintable() else PREFIX


def unit_path(slug: str, code: str) -> str:
    return f"{PREFIX}/projects/{quote(slug, safe='')}/units/{quote(code, safe='')}"


def with_query(path: str, **values: str | None) -> str:
    """Return the path with the values that are set as its query."""
    query = urlencode({name: value for name, value in values.items() if value})
    return f"{path}?{query}" if query else path
