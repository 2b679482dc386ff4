"""Staff in the back office: they sign in, follow links and fill in forms."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping
from html import unescape
from typing import Any
from uuid import uuid4

import httpx

from holdfast.web.pages.forms import csrf_token
from tests.support.app import transport_to
from tests.support.client import NO_TLS, is_no_fault_of_ours
from tests.support.sql import Sql

_INSERT_STAFF = """
    insert into staff (id, email, email_key, name, role, language, digits)
    values ($1, $2, $2, $3, $4, $5, $6)
"""
_INSERT_SESSION = """
    insert into staff_session (id, token_hash, staff_id, address, agent)
    values ($1, $2, $3, '127.0.0.1', 'tests')
"""
_SESSION = "__Host-holdfast_session"
_CSRF = re.compile(r'name="csrf" value="([0-9a-f]{128})"')
_HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
_NEXT = re.compile(r'href="([^"]+)" rel="next"|rel="next" href="([^"]+)"')


def missing(page: str, *texts: str) -> list[str]:
    """Those of the texts that the page does not show."""
    return [text for text in texts if text not in page]


def next_page(page: str) -> str | None:
    found = _NEXT.search(page)
    return unescape(found[1] or found[2]).partition("#")[0] if found else None


def hidden_fields(page: str, action: str) -> dict[str, str]:
    """The hidden fields of the page's form that goes to this path, its token included."""
    form = page.split(f'<form method="post" action="{action}"')[1].split("</form>")[0]
    return {name: unescape(value) for name, value in _HIDDEN.findall(form)}


class Person(httpx.Client):
    """A browser without scripts. It does not follow redirects by itself."""

    def __init__(self, address: str, token: str | None = None) -> None:
        super().__init__(
            base_url=address,
            timeout=60,
            verify=NO_TLS,
            transport=transport_to(address),
            headers={"accept": "text/html,*/*", "accept-language": "en"},
        )
        self._jar = {} if token is None else {_SESSION: token}
        self.email = ""
        self.staff_id = ""
        self.event_hooks = {"response": [self._keep_cookies, is_no_fault_of_ours]}

    def see(self, path: str, status: int = 200, **headers: str) -> str:
        """The page at this path."""
        answer = self.get(path, headers={**self.sent(), **headers})
        assert answer.status_code == status, f"{answer.status_code} at {path}: {answer.text[:2000]}"
        return answer.text

    def look(self, path: str, **headers: str) -> httpx.Response:
        return self.get(path, headers={**self.sent(), **headers})

    def all_pages(self, path: str) -> list[str]:
        """The page at this path, and those that follow it."""
        pages = [self.see(path)]
        while (following := next_page(pages[-1])) is not None:
            pages.append(self.see(following))
        return pages

    def submit(
        self,
        path: str,
        fields: Mapping[str, Any] | None = None,
        *,
        on: str | None = None,
        site: str = "same-origin",
        **more: Any,
    ) -> httpx.Response:
        """Sends a form, with the token that stands on the page ``on``, or that follows from the session."""
        if on is None and _SESSION in self._jar:
            token = csrf_token(self._jar[_SESSION])
        else:
            found = _CSRF.search(self.look(on or "/backoffice/account").text)
            assert found is not None
            token = found[1]
        return self.post(
            path,
            data={"csrf": token, **(fields or {})},
            headers={**self.sent(), "sec-fetch-site": site},
            **more,
        )

    def press(self, path: str, *, on: str) -> httpx.Response:
        """Sends the form for this path as it stands on the page ``on``."""
        return self.submit(path, hidden_fields(self.see(on), path))

    def refused(
        self, path: str, fields: Mapping[str, Any] | None = None, status: int = 422, **more: Any
    ) -> str:
        """A form that is refused; the page that says why."""
        answer = self.submit(path, fields, **more)
        assert answer.status_code == status, f"{answer.status_code} at {path}: {answer.text[:2000]}"
        return answer.text

    def done(self, path: str, fields: Mapping[str, Any] | None = None, **more: Any) -> str:
        """A form that is taken; the page that follows it."""
        answer = self.submit(path, fields, **more)
        assert answer.status_code == 303, f"{answer.status_code} at {path}: {answer.text[:2000]}"
        return self.see(answer.headers["location"])

    def sent(self) -> dict[str, str]:
        """httpx keeps cookies that are for https alone to itself; browsers send them to this machine."""
        return {"cookie": "; ".join(f"{name}={value}" for name, value in self._jar.items())}

    def _keep_cookies(self, response: httpx.Response) -> None:
        for line in response.headers.get_list("set-cookie"):
            name, _, value = line.split(";")[0].partition("=")
            if "max-age=0" in line.lower():
                self._jar.pop(name, None)
            else:
                self._jar[name] = value.strip('"')


class People:
    """Makes staff with a session, without the way through the sign-in page."""

    def __init__(self, sql: Sql, address: str) -> None:
        self._sql = sql
        self._address = address
        self._made: list[Person] = []

    def leave(self) -> None:
        for person in self._made:
            person.close()

    def signed_in(self, role: str = "admin", *, language: str = "en", digits: str = "latn") -> Person:
        token, staff_id = secrets.token_urlsafe(32), uuid4()
        email = f"{role}-{secrets.token_hex(4)}@example.com"
        self._sql.execute(_INSERT_STAFF, staff_id, email, f"{role.title()} Person", role, language, digits)
        self._sql.execute(_INSERT_SESSION, uuid4(), hashlib.sha256(token.encode()).digest(), staff_id)
        person = self._person(token)
        person.email, person.staff_id = email, str(staff_id)
        return person

    def stranger(self) -> Person:
        return self._person(None)

    def _person(self, token: str | None) -> Person:
        person = Person(self._address, token)
        self._made.append(person)
        return person
